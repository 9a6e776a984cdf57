// The `host` target: CUDA's device and runtime names for g++, so that an emitted .cu builds and runs on a CPU.
//     g++ -x c++ -std=c++17 -O2 -ffp-contract=off -pthread -rdynamic -include cuda_host.h program.cu
// A block's threads are fibers on one CPU thread, blocks go over the cores. It checks a GPU program's bits; it is no
// fast CPU back end. Environment: MONOCU_HOST_SEED (0: threads in order; else an order per seed), MONOCU_HOST_THREADS
// (CPU threads, by default every core), MONOCU_HOST_TIMEOUT (seconds a wait_until may last, by default 20).
// A deadlock, an overflown fiber stack or a misuse of the model ends the process with status 70.
#pragma once

#include <dlfcn.h>
#include <cxxabi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
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
#include "api.h"
#include "graphs.h"
#include "launch.h"
