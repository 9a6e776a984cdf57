// The driver: from here on host code that reads flags and files, plans memory, runs steps and prints.
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#ifdef __CUDACC__
constexpr bool ON_HOST = false;
#else
constexpr bool ON_HOST = true;  // built by g++: threads of the CPU play the GPU
#endif

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
// Bytes as a person reads them.
std::string mib(size_t bytes) {
    char text[32];
    snprintf(text, sizeof text, "%.1f MiB", double(bytes) / (1 << 20));
    return text;
}
