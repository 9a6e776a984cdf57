// Steps on the device: the Step table goes up where it is not there already, a step's launches are
// captured once for each pair of row counts and replayed from then on, chosen tokens come back.
struct Captured {
    cudaGraphExec_t graph;
    int launches;
};
struct Counters {
    size_t steps = 0, prefill_steps = 0, launches = 0, captures = 0, replays = 0, uploads = 0;
    size_t prompt_rows = 0, decode_rows = 0;
    double load = 0, capture = 0, prefill = 0, decode = 0;  // seconds
};
struct Session : Recording {
    Step* table = nullptr;  // pinned: the next step's
    Step there = {};        // what the device's table holds, where `known`
    bool known = false;
    int* next = nullptr;      // pinned: the chosen tokens
    float* logits = nullptr;  // pinned, f32[MAX_WANTED, VOCAB], where they are asked for
    bool graphs = true;
    std::map<std::pair<int, int>, Captured> captured;
    Counters counters;
};

// The counts that launches are made for: 1, 2, 4, ... and the greatest.
int bucket(int count, int most) {
    int size = 1;
    while (size < count) size *= 2;
    return std::min(size, most);
}
// Issues a step's launches: the program, then the table's move to the next token.
void issue_step(Session& s, int rows, int wanted) {
    s.launches = 0;
    forward(s, rows, wanted);
    launch(s.stream, advance, Shape{dim3(1), dim3(128), 0}, s.step,
           reinterpret_cast<const int*>(s.buffers + NEXT));
    s.launches++;
}
const Captured& capture_step(Session& s, int rows, int wanted) {
    auto found = s.captured.find({rows, wanted});
    if (found != s.captured.end()) return found->second;
    double start = seconds();
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    check(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    issue_step(s, rows, wanted);
    check(cudaStreamEndCapture(s.stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    s.counters.captures++;
    s.counters.capture += seconds() - start;
    return s.captured[{rows, wanted}] = {ready, s.launches};
}
void upload_table(Session& s) {
    if (s.known && same_table(*s.table, s.there)) return;
    check(cudaMemcpyAsync(s.step, s.table, sizeof(Step), cudaMemcpyHostToDevice, s.stream), "Step");
    s.counters.uploads++;
}
void start_step(Session& s) {
    int rows = bucket(s.table->rows, MAX_ROWS), wanted = bucket(s.table->wanted, MAX_WANTED);
    upload_table(s);
    if (!s.graphs) {
        issue_step(s, rows, wanted);
        s.counters.launches += size_t(s.launches);
        return;
    }
    const Captured& ready = capture_step(s, rows, wanted);
    check(cudaGraphLaunch(ready.graph, s.stream), "cudaGraphLaunch");
    s.counters.replays++;
    s.counters.launches += size_t(ready.launches);
}
void copy_back(Session& s, void* to, size_t offset, size_t bytes, const char* what) {
    if (!bytes || !to) return;
    check(cudaMemcpyAsync(to, s.buffers + offset, bytes, cudaMemcpyDeviceToHost, s.stream), what);
}
void count_step(Counters& c, const Taken& taken, double took) {
    c.steps++;
    c.prefill_steps += taken.prompt_rows > 0;
    c.prompt_rows += taken.prompt_rows;
    if (!taken.prompt_rows) c.decode_rows += taken.rows.size();
    (taken.prompt_rows ? c.prefill : c.decode) += took;
}
// Runs the step that s.table says; its tokens are in s.next, its logits in s.logits.
void run_step(Session& s, const Taken& taken) {
    double start = seconds(), capture = s.counters.capture;
    start_step(s);
    size_t count = size_t(s.table->wanted);
    copy_back(s, s.next, NEXT, count * sizeof(int), "next");
    copy_back(s, s.logits, LOGITS, count * VOCAB * sizeof(float), "logits");
    check(cudaStreamSynchronize(s.stream), "a step");
    s.there = *s.table;
    s.known = advance_table(s.there, s.next);
    count_step(s.counters, taken, seconds() - start - (s.counters.capture - capture));
}
void open_session(Session& s, const MemoryPlan& plan, bool with_logits) {
    s.table = pinned_array<Step>(1);
    memset(s.table, 0, sizeof(Step));
    s.next = pinned_array<int>(MAX_WANTED);
    s.table->keep_logits = with_logits || s.recorder;
    if (with_logits) s.logits = pinned_array<float>(size_t(MAX_WANTED) * VOCAB);
    open_memory(s, plan, *s.table);
}
void close_session(Session& s) {
    for (auto& [counts, ready] : s.captured)
        check(cudaGraphExecDestroy(ready.graph), "cudaGraphExecDestroy");
    close_memory(s, s.table->pages);
    for (void* memory :
         {static_cast<void*>(s.table), static_cast<void*>(s.next), static_cast<void*>(s.logits)})
        if (memory) check(cudaFreeHost(memory), "cudaFreeHost");
}
