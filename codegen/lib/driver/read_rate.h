// What the memory gives at most, measured in the run whose figures stand beside it.

// Bytes a second that reads of more than any cache holds get, at best of ten times.
double read_rate(cudaStream_t stream) {
    int device = 0, sms = 0;
    size_t room = 0, all = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
    check(cudaMemGetInfo(&room, &all), "cudaMemGetInfo");
    const Shape shape = {dim3(unsigned(8 * sms)), dim3(512), 0};
    const size_t round = size_t(8 * sms) * 512 * 8 * sizeof(int4);  // bytes of all threads' reads
    const size_t most = std::min(room / 2, size_t(ON_HOST ? 4 : 4096) << 20);
    const size_t bytes = std::max(round, most / round * round);
    int4* from = device_array<int4>(bytes / sizeof(int4));
    int* out = device_array<int>(1);
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
    check(cudaFree(out), "cudaFree");
    return rate(bytes, 1e-3 * double(best));
}
