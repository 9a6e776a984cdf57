// Fibers: a stack with a saved context, a switch between two of them (x86-64, aarch64), and ASan's annotations of it.
// A fiber never moves between CPU threads. Contract: only `switch_fiber` touches a Context.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define MONOCU_ASAN 1
#else
#define MONOCU_ASAN 0
#endif

namespace monocu_host {

// ASan's redzones make frames several times larger.
constexpr size_t STACK_BYTES = MONOCU_ASAN ? 512 << 10 : 64 << 10;
constexpr size_t CACHE_LINE = 64;
// f32, f16, bf16 and f64 read from this pattern are all NaN, so that a read of memory nobody wrote shows.
constexpr uint16_t POISON = 0xFFA5;
// The lowest bytes of a stack are a guard that holds a pattern; its top is checked after a launch.
constexpr size_t GUARD_BYTES = 4 << 10;

struct Context {
    void* sp;
    void* fp;
    void* pc;
};

struct Fiber {
    Context context = {};
    char* stack = nullptr;  // lowest byte; the worker's own stack under ASan, else null there
    size_t bytes = 0;
    void* fake_stack = nullptr;  // ASan's
    Fiber* next = nullptr;       // in the worker's list of idle fibers
};

// Says what is wrong on stderr and ends the process: the program under test broke the CUDA model.
[[noreturn]] __attribute__((cold, noinline, format(printf, 1, 2))) inline void fail(const char* format, ...) {
    fflush(stdout);
    fputs("host target: ", stderr);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stderr);
    _exit(70);
}

// NOTE: by a jump, in line, never by `ret`: the CPU predicts the jump, and as all threads wait at the same call its
// return stack stays right too. Everything but sp, fp and pc is a clobber, so the compiler saves only what is live.
inline __attribute__((always_inline)) void swap_context(Context* from, const Context* to) {
#if defined(__x86_64__)
    asm volatile(
        "leaq 1f(%%rip), %%rax\n\t"
        "movq %%rsp, 0(%0)\n\t"
        "movq %%rbp, 8(%0)\n\t"
        "movq %%rax, 16(%0)\n\t"
        "movq 0(%1), %%rsp\n\t"
        "movq 8(%1), %%rbp\n\t"
        "jmpq *16(%1)\n"
        "1:\n"
        : "+D"(from), "+S"(to)
        :
        : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
          "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
          "xmm14", "xmm15",
#if defined(__AVX512F__)
          "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",
          "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
          "memory", "cc");
#elif defined(__aarch64__)
    register Context* out asm("x0") = from;
    register const Context* in asm("x1") = to;
    asm volatile(
        "mov x9, sp\n\t"
        "adr x10, 1f\n\t"
        "str x9, [x0, 0]\n\t"
        "str x29, [x0, 8]\n\t"
        "str x10, [x0, 16]\n\t"
        "ldr x9, [x1, 0]\n\t"
        "ldr x29, [x1, 8]\n\t"
        "ldr x10, [x1, 16]\n\t"
        "mov sp, x9\n\t"
        "br x10\n"
        "1:\n"
        : "+r"(out), "+r"(in)
        :
        : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
          "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1",
          "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
          "v31", "memory", "cc");
#else
#error "the host target knows x86-64 and aarch64"
#endif
}

// Runs `to` until something switches back to `from`.
inline __attribute__((always_inline)) void switch_fiber(Fiber* from, Fiber* to) {
#if MONOCU_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->bytes);
#endif
    swap_context(&from->context, &to->context);
#if MONOCU_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
#endif
}

// A fiber that starts in `entry`, which never returns. `number` staggers the stacks' tops: at equal offsets in their
// pages all of a block's frames would fall into the same few cache sets.
inline Fiber* make_fiber(void (*entry)(), size_t number) {
    void* memory = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) fail("no memory for a thread's stack");
    Fiber* fiber = new Fiber;
    fiber->stack = static_cast<char*>(memory);
    fiber->bytes = STACK_BYTES;
    memset(fiber->stack, 0xA5, GUARD_BYTES);
    char* top = fiber->stack + STACK_BYTES - CACHE_LINE - (number * 7 % 64) * CACHE_LINE;
#if defined(__x86_64__)
    top -= sizeof(void*);  // where a call would have left its return address; zero ends a debugger's walk
#endif
    fiber->context = {top, nullptr, reinterpret_cast<void*>(entry)};
    return fiber;
}

inline bool overflown(const Fiber* fiber) {
    return static_cast<unsigned char>(fiber->stack[GUARD_BYTES - 1]) != 0xA5;  // one cache line: this runs often
}

}  // namespace monocu_host
