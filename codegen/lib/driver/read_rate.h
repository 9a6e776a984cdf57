// What the memory gives at most, measured in the run whose figures stand beside it.

// Bytes a second that reads of more than any cache holds get, at best of ten times; 0 where there is
// no room for them: whoever asks has measured what it came for, and loses a share, not a run.
double read_rate(cudaStream_t stream) {
    int device = 0, sms = 0;
    size_t room = 0, all = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
    check(cudaMemGetInfo(&room, &all), "cudaMemGetInfo");
    const Shape shape = {dim3(unsigned(8 * sms)), dim3(512), 0};
    const size_t round = size_t(8 * sms) * 512 * 8 * sizeof(int4);  // bytes of all threads' reads
    const size_t most = std::min(room / 2, size_t(ON_HOST ? 4 : 4096) << 20);
    if (most < 4 * round) return 0;  // one round, 69 MB of an H200, would be half in its L2
    const size_t bytes = most / round * round;
    int4* from = nullptr;  // `out` is behind it
    if (cudaMalloc(&from, bytes + sizeof(int4)) != cudaSuccess) {
        cudaGetLastError();  // or the next launch would find it
        return 0;
    }
    int* out = reinterpret_cast<int*>(from + bytes / sizeof(int4));
    cudaEvent_t start, end;
    check(cudaEventCreate(&start), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    check(cudaMemsetAsync(from, 0, bytes, stream), "cudaMemset");
    float best = 0;
    for (int i = 0; i < 10; i++) {
        float took = 0;
        check(cudaEventRecord(start, stream), "cudaEventRecord");
        launch(stream, read_all, shape, from, bytes / sizeof(int4), out);
        check(cudaEventRecord(end, stream), "cudaEventRecord");
        check(cudaStreamSynchronize(stream), "read_all");
        check(cudaEventElapsedTime(&took, start, end), "cudaEventElapsedTime");
        best = i ? std::min(best, took) : took;
    }
    check(cudaEventDestroy(start), "cudaEventDestroy");
    check(cudaEventDestroy(end), "cudaEventDestroy");
    check(cudaFree(from), "cudaFree");
    return rate(bytes, 1e-3 * double(best));
}
