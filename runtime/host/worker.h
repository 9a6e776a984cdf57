// A CPU thread at work: it takes blocks of a launch, runs their threads as fibers and switches where a thread waits.
// Also the pool of such threads. Contract: `run_launch` returns when every block has ended.
#pragma once

namespace monocu_host {

struct Settings {
    std::atomic<uint32_t> seed{0};
    unsigned threads = 1;
    double timeout_seconds = 20;
};

inline long environment(const char* name, long otherwise) {
    const char* text = getenv(name);
    return text && *text ? strtol(text, nullptr, 10) : otherwise;
}

inline Settings& settings() {
    static Settings* made = [] {
        Settings* s = new Settings;
        cpu_set_t cores;
        const long count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
        const long threads = environment("MONOCU_HOST_THREADS", count);
        s->threads = threads < 1 ? 1 : static_cast<unsigned>(threads);
        s->seed = static_cast<uint32_t>(environment("MONOCU_HOST_SEED", 0));
        s->timeout_seconds = static_cast<double>(environment("MONOCU_HOST_TIMEOUT", 20));
        return s;
    }();
    return *made;
}

struct Worker {
    Fiber native;  // the CPU thread's own stack
    Fiber* running = nullptr;
    Fiber* idle = nullptr;       // fibers parked in `run_threads`
    std::vector<Fiber*> fibers;  // all that were made
    Launch* launch = nullptr;
    std::vector<Block*> active, spare;  // active: blocks begun and not ended, the running one among them
    size_t turn = 0;                    // of the running block in `active`
    uint3 dims = {0, 0, 0};             // of `index`
    uint3 index[MAX_THREADS];
    double stuck_since = 0;  // when every thread that could run was first seen to spin; 0: they are not
};

inline __thread Worker* worker = nullptr;

// Seconds of a clock that only goes forward.
inline double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline void fill_poison(void* memory, size_t bytes) {
    constexpr uint64_t FOUR = POISON * 0x0001000100010001ull;
    char* at = static_cast<char*>(memory);
    for (; bytes >= 64; at += 64, bytes -= 64)
        for (int i = 0; i < 64; i += 8) memcpy(at + i, &FOUR, 8);
    for (; bytes >= 8; at += 8, bytes -= 8) memcpy(at, &FOUR, 8);
    if (bytes) memcpy(at, &FOUR, bytes);
}

inline void give_shared_memory(Block& b, size_t bytes) {
    if (b.shared_bytes < bytes ||
        (MONOCU_ASAN && b.shared_bytes != bytes)) {  // ASan: the exact size, so its redzones bite
        free(b.shared);
        b.shared = static_cast<char*>(aligned_alloc(1024, (bytes + 1023) / 1024 * 1024));
        if (!b.shared) fail("no memory for a block's shared memory");
        b.shared_bytes = bytes;
#if MONOCU_ASAN
        ASAN_POISON_MEMORY_REGION(b.shared + bytes, (bytes + 1023) / 1024 * 1024 - bytes);
#endif
    }
    fill_poison(b.shared, bytes);
}

inline void enter_block(Block* b) {
    block = b;
    blockIdx = b->index;
}

// Begins the launch's next block. False where there is none left.
inline bool begin_block(Worker& me) {
    Launch& launch = *me.launch;
    uint64_t number = __atomic_fetch_add(&launch.next, 1, __ATOMIC_RELAXED);
    if (number >= launch.blocks) return false;
    const uint32_t seed = settings().seed.load(std::memory_order_relaxed);
    if (seed)
        number = static_cast<uint64_t>(
            (static_cast<unsigned __int128>(number) * launch.stride + launch.offset) % launch.blocks);
    Block* b;
    if (me.spare.empty()) {
        b = new Block;
    } else {
        b = me.spare.back();
        me.spare.pop_back();
    }
    const uint64_t xs = launch.grid.x, ys = launch.grid.y;
    uint3 index = {static_cast<unsigned>(number % xs), static_cast<unsigned>(number / xs % ys),
                   static_cast<unsigned>(number / xs / ys)};
    uint32_t random = seed ? (static_cast<uint32_t>(number) * 2654435761u ^ seed * 0x9E3779B9u) | 1u : 0;
    start_block(*b, launch, index, random);
    give_shared_memory(*b, launch.shared);
    me.turn = me.active.size();
    me.active.push_back(b);
    enter_block(b);
    return true;
}

inline void end_block(Worker& me) {
    me.spare.push_back(block);
    me.stuck_since = 0;
    me.active[me.turn] = me.active.back();
    me.active.pop_back();
    me.turn = 0;
    if (!me.active.empty()) enter_block(me.active[0]);
}

// All threads of the block that could run spin: lets them look again after another block has had its turn.
inline void take_turns(Worker& me) {
    for (unsigned w = 0; w < block->warps; w++) {
        wake(*block, w, block->warp_at[w].spinning);
        block->warp_at[w].spinning = 0;
    }
    block->spinning = 0;
    if (begin_block(me)) return;
    me.turn = (me.turn + 1) % me.active.size();
    enter_block(me.active[me.turn]);
    if (me.turn) return;
    const double time = now();
    if (me.stuck_since == 0) me.stuck_since = time;
    if (time - me.stuck_since > settings().timeout_seconds)
        fail_block("wait_until: the flag never got its value");
    sched_yield();
}

// No thread of the block can run: goes on to a block that has one. False where this CPU thread has no more work.
inline __attribute__((noinline)) bool find_work(Worker& me) {
    while (!block->runnable) {
        if (!block->live) {
            end_block(me);
            if (me.active.empty() && !begin_block(me)) return false;
        } else if (block->spinning) {
            take_turns(me);
        } else {
            fail_deadlock();
        }
    }
    return true;
}

enum class Next { FRESH, READY, NONE };

// Chooses the next thread to run, makes it current and takes it out of its mask.
inline __attribute__((always_inline)) Next pick(Worker& me) {
    if (__builtin_expect(!block->runnable, 0) && !find_work(me)) return Next::NONE;
    Block& b = *block;
    if (b.random || !(b.runnable >> b.warp & 1)) b.warp = choose(b.runnable, b.random);
    Warp& warp = b.warp_at[b.warp];
    b.lane = choose(warp.fresh | warp.ready, b.random);
    const uint32_t bit = 1u << b.lane, fresh = warp.fresh & bit;
    warp.fresh &= ~bit;
    warp.ready &= ~bit;
    if (!(warp.fresh | warp.ready)) b.runnable &= ~(1u << b.warp);
    return fresh ? Next::FRESH : Next::READY;
}

inline Fiber* current_fiber() { return block->warp_at[block->warp].fiber[block->lane]; }

// The body of every fiber: runs fresh threads one after another on this stack; a thread that ends without waiting
// costs no switch. Parks itself when the next thread to run is one that waited.
[[noreturn]] inline void run_threads() {
    Worker& me = *worker;
#if MONOCU_ASAN
    const void* bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
    if (!me.native.stack) {
        me.native.stack = static_cast<char*>(const_cast<void*>(bottom));
        me.native.bytes = bytes;
    }
#endif
    for (;;) {
        threadIdx = me.index[block->warp * WARP + block->lane];
        me.launch->run(me.launch->arguments);
        Block& b = *block;
        b.warp_at[b.warp].ended |= 1u << b.lane;
        b.live--;
        Fiber* self = me.running;
        const Next next = pick(me);
        if (next == Next::FRESH) continue;
        self->next = me.idle;
        me.idle = self;
        me.running = next == Next::READY ? current_fiber() : &me.native;
        switch_fiber(self, me.running);
        me.running = self;
    }
}

inline Fiber* idle_fiber(Worker& me) {
    if (!me.idle) {
        me.fibers.push_back(make_fiber(run_threads, me.fibers.size()));
        return me.fibers.back();
    }
    Fiber* fiber = me.idle;
    me.idle = fiber->next;
    return fiber;
}

// The running thread waits: runs others until something has made it ready and it is chosen again.
inline __attribute__((noinline)) void suspend() {
    Worker& me = *worker;
    Fiber* self = me.running;
    const unsigned warp = block->warp, lane = block->lane;
    block->warp_at[warp].fiber[lane] = self;
    Fiber* to = pick(me) == Next::FRESH ? idle_fiber(me) : current_fiber();
    if (to != self) {
        me.running = to;
        switch_fiber(self, to);
        me.running = self;
    }
    threadIdx = me.index[warp * WARP + lane];
}

// Runs blocks of the launch on this CPU thread until none is left to begin.
inline void work(Launch& launch) {
    if (!worker) worker = new Worker;
    Worker& me = *worker;
    me.launch = &launch;
    me.stuck_since = 0;
    blockDim = launch.block;
    gridDim = launch.grid;
    if (memcmp(&me.dims, &launch.block, sizeof me.dims) != 0) {
        const uint3 d = me.dims = launch.block;
        for (unsigned t = 0; t < launch.threads; t++) me.index[t] = {t % d.x, t / d.x % d.y, t / d.x / d.y};
    }
    if (!begin_block(me)) return;
    pick(me);
    me.running = idle_fiber(me);
    switch_fiber(&me.native, me.running);
    for (const Fiber* fiber : me.fibers)
        if (overflown(fiber)) fail_kernel(launch, "a thread's stack of %zu bytes overflowed", STACK_BYTES);
}

}  // namespace monocu_host
