// Memory: what is allocated, said and checked against the device before the first allocation.
struct MemoryPlan {
    size_t weights, buffers, staging;  // bytes; staging only while the checkpoint is read
    int sequences, context, pages;     // at once; tokens of each; pages of each
    size_t entry;                      // bytes of a position in all caches
    size_t positions() const { return size_t(sequences) * size_t(pages) * 64; }
    size_t cache() const { return positions() * entry; }
    size_t tables() const { return sizeof(Step) + size_t(sequences) * size_t(pages) * sizeof(int); }
    size_t total() const { return weights + buffers + staging + cache() + tables(); }
};
MemoryPlan plan_memory(size_t weights, size_t staging, int sequences, int context) {
    return {weights,
            BUFFER_BYTES,
            staging,
            sequences,
            context,
            (context + 63) / 64,
            CACHE_BYTES_PER_POSITION};
}
void print_memory(FILE* out, const MemoryPlan& plan) {
    fprintf(out, "memory: weights %s, buffers %s, cache %s (%d x %d positions), in all %s\n",
            mib(plan.weights).c_str(), mib(plan.buffers).c_str(), mib(plan.cache()).c_str(),
            plan.sequences, plan.pages * 64, mib(plan.total()).c_str());
}
// Refuses a plan that the device has no room for, naming the largest context that fits.
void check_memory(const MemoryPlan& plan) {
    size_t room = 0, all = 0;
    check(cudaMemGetInfo(&room, &all), "cudaMemGetInfo");
    if (plan.total() <= room) return;
    size_t fixed = plan.weights + plan.buffers + plan.staging + sizeof(Step);
    size_t page = size_t(plan.sequences) * (64 * plan.entry + sizeof(int));
    size_t most = room > fixed ? (room - fixed) / page * 64 : 0;
    std::string way =
        most ? "the largest context that fits is " + std::to_string(most) : "no context fits";
    fail(DEVICE,
         "memory: %s is needed (weights %s, buffers %s, cache %s for a context of %d), %s is free; "
         "%s",
         mib(plan.total()).c_str(), mib(plan.weights).c_str(), mib(plan.buffers).c_str(),
         mib(plan.cache()).c_str(), plan.context, mib(room).c_str(), way.c_str());
}
// Bytes of the device's memory in use, whoever uses them; on host the most that this process had.
size_t memory_in_use() {
    size_t room = 0, all = 0;
    check(cudaMemGetInfo(&room, &all), "cudaMemGetInfo");
    struct rusage used;
    if (ON_HOST && getrusage(RUSAGE_SELF, &used) == 0) return size_t(used.ru_maxrss) << 10;
    return all - room;
}
template <class T>
T* device_array(size_t count) {
    T* at = nullptr;
    check(cudaMalloc(&at, std::max<size_t>(count, 1) * sizeof(T)), "cudaMalloc");
    return at;
}
template <class T>
T* pinned_array(size_t count) {
    T* at = nullptr;
    check(cudaMallocHost(&at, std::max<size_t>(count, 1) * sizeof(T)), "cudaMallocHost");
    return at;
}
void open_device(Device& d, int number) {
    int count = 0;
    check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    if (number >= count)
        fail(DEVICE, "--device: 0 to %d is needed, %d was given", count - 1, number);
    check(cudaSetDevice(number), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&d.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    verify_arithmetic(d.stream);
}
std::string device_name(int number) {
    cudaDeviceProp found;
    check(cudaGetDeviceProperties(&found, number), "cudaGetDeviceProperties");
    if (ON_HOST) return "host";
    return "cuda sm_" + std::to_string(found.major * 10 + found.minor) + " (" + found.name + ")";
}
// Pages follow one another, sequence by sequence.
int* page_table(const Device& d, const MemoryPlan& plan) {
    size_t count = size_t(plan.sequences) * size_t(plan.pages);
    std::vector<int> pages(count);
    for (size_t i = 0; i < count; i++) pages[i] = int(i);
    int* table = device_array<int>(count);
    check(
        cudaMemcpyAsync(table, pages.data(), count * sizeof(int), cudaMemcpyHostToDevice, d.stream),
        "pages");
    check(cudaStreamSynchronize(d.stream), "pages");
    return table;
}
// Sets the pages of `step`, which is in host memory.
void open_memory(Device& d, const MemoryPlan& plan, Step& step) {
    d.weights = device_array<uint8_t>(plan.weights);
    d.buffers = device_array<uint8_t>(plan.buffers);
    d.cache = device_array<uint8_t>(plan.cache());
    d.positions = plan.positions();
    d.step = device_array<Step>(1);
    step.pages_per_seq = plan.pages;
    step.pages = page_table(d, plan);
}
void close_memory(Device& d, int* pages) {
    check(cudaStreamSynchronize(d.stream), "cudaStreamSynchronize");
    for (void* memory :
         {static_cast<void*>(d.weights), static_cast<void*>(d.buffers), static_cast<void*>(d.cache),
          static_cast<void*>(d.step), static_cast<void*>(pages)})
        check(cudaFree(memory), "cudaFree");
    check(cudaStreamDestroy(d.stream), "cudaStreamDestroy");
}
