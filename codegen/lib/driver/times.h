// Times of launches (a build by Options.timed), written as JSON behind a run: what the memory gives at
// most, measured by plain reads; when each launch of each step came to its wait and was let through, in
// ns since the first; behind them the records of launches that were repeated alone.

// Launches of the last step again, in turn and back to back, `count` of them and one that ends the last.
// NOTE: what they append to caches or add to sums in place they append and add each time, so that
// values are not a step's any more; their times are.
void repeat_launches(Session& s, const std::vector<int>& only, int count) {
    s.known = false;
    upload_table(s);  // `advance` has moved it on
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    check(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    s.pages = s.last[2];
    for (int i = 0; i <= count; i++) {
        s.only = only[size_t(i) % only.size()];
        s.launches = 0;
        forward(s, s.last[0], s.last[1]);
        if (s.only >= s.launches)
            fail(USAGE, "--only: a launch of the last step is needed, 0 to %d, %d was given",
                 s.launches - 1, s.only);
    }
    s.only = -1;
    check(cudaStreamEndCapture(s.stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    check(cudaGraphLaunch(ready, s.stream), "cudaGraphLaunch");
    check(cudaStreamSynchronize(s.stream), "repeated launches");
    check(cudaGraphExecDestroy(ready), "cudaGraphExecDestroy");
}
std::vector<LaunchTime> noted_times(const Options& o) {
    int count = 0;
    check(cudaMemcpyFromSymbol(&count, launch_time_count, sizeof count), "launch_time_count");
    if (count > MAX_TIMES)
        fail(USAGE, "--times: at most %d launches are noted, %d were made; a smaller -n%s is needed",
             MAX_TIMES, count, o.only.empty() ? "" : " or --repeat");
    std::vector<LaunchTime> times(size_t(count), LaunchTime{0, 0});
    if (times.empty()) return times;
    check(cudaMemcpyFromSymbol(times.data(), launch_times, times.size() * sizeof(LaunchTime)),
          "launch_times");
    return times;
}
void write_times(Session& s, const Options& o) {
    if (!o.only.empty()) repeat_launches(s, o.only, o.repeat);
    const std::vector<LaunchTime> times = noted_times(o);
    std::string text = "[";
    for (const LaunchTime& time : times) {
        text += text.size() > 1 ? ",\n[" : "\n[";
        text += std::to_string(int64_t(time.came - times[0].came)) + ", " +
                std::to_string(int64_t(time.waited - times[0].came)) + "]";
    }
    Json json;
    json.add_real("read_bytes_per_second", read_rate(s.stream));
    json.add("times", text + "]");
    NewFile out = open_file(o.times);
    write_file(out, json.text.data(), json.text.size());
    write_file(out, "}\n", 2);
    close_file(out);
}
