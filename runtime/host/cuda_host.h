// The `host` target: CUDA's device and runtime names for g++, so that an emitted .cu builds and runs on a CPU.
//     g++ -x c++ -std=c++17 -O2 -ffp-contract=off -pthread -rdynamic -include cuda_host.h program.cu
// A block's threads are fibers on one CPU thread, blocks go over the cores. It checks a GPU program's bits; it is no
// fast CPU back end. Environment: MONOCU_HOST_SEED (0: threads in order; else an order per seed), MONOCU_HOST_THREADS
// (CPU threads, by default every core), MONOCU_HOST_TIMEOUT (seconds a wait_until may last, by default 20).
// A deadlock, an overflown fiber stack or a misuse of the model ends the process with status 70.
#pragma once

// NOTE: these headers cost 130 ms a compilation; <string>, <functional>, <mutex> or <immintrin.h> would each add more.
#include <cxxabi.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS  // C's own <math.h> and <stdlib.h>: libstdc++'s take 250 ms
#include <math.h>
#include <stdlib.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#undef isnan  // C's macros would break std::isnan
#undef isinf
#undef isfinite
#undef isnormal
#undef signbit

#include <atomic>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "types.h"
#include "fibers.h"
#include "block.h"
#include "worker.h"
#include "warp.h"
#include "atomics.h"
#include "arithmetic.h"
#include "mma.h"
#include "api.h"
#include "graphs.h"
#include "launch.h"
