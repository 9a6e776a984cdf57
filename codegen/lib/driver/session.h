// Steps on the device: the Step table goes up where it is not there already, a step's launches are
// captured once for each pair of row counts and replayed from then on, chosen tokens come back. A
// step whose successor is sure but for a stop has it queued behind itself before its tokens are
// read, so that the device does not wait for the host.
struct Captured {
    cudaGraphExec_t graph;
    int launches;
};
using Counts = std::array<int, 3>;  // rows, wanted, pages
struct Counters {
    size_t steps = 0, prefill_steps = 0, launches = 0, captures = 0, replays = 0, uploads = 0;
    size_t prompt_rows = 0, decode_rows = 0;
    size_t peak = 0;       // bytes of memory in use
    double read_rate = 0;  // bytes a second that plain reads get, measured where it is asked for
    double load = 0, capture = 0, prefill = 0, decode = 0;  // seconds
};
struct Session : Recording {
    Step* table = nullptr;  // pinned: the next step's
    Step there = {};        // what the device's table holds, where `known`
    bool known = false;
    int* chosen = nullptr;    // pinned, [2][MAX_WANTED]: the tokens of this step and of the one queued
    cudaEvent_t done[2];      // theirs are there
    int turn = 0;             // which of them is this step's
    bool ahead = false;       // the step after the last one is queued
    float* logits = nullptr;  // pinned, f32[MAX_WANTED, VOCAB], where they are asked for
    bool graphs = true;
    std::map<Counts, Captured> captured;
    Counters counters;
//% if options.timed
    Counts last;  // of the step that was started last
//% endif
};

// The counts that launches are made for: 1, 2, 4, ... and the greatest.
int bucket(int count, int most) {
    int size = 1;
    while (size < count) size *= 2;
    return std::min(size, most);
}
// Whether a row attends to few pages: a step of one row has launches of its own then.
int page_bucket(const Step& step) {
    return step.rows == 1 && step.pos[0] < FEW_PAGES * 64 ? FEW_PAGES : MANY_PAGES;
}
// Issues a step's launches: the program, then the table's move to the next token.
void issue_step(Session& s, const Counts& counts) {
    s.launches = 0;
    s.pages = counts[2];
    forward(s, counts[0], counts[1]);
//% if options.ranges
    const ProfilerRange range("advance");
//% endif
    launch(s.stream, advance, Shape{dim3(1), dim3(128), 0}, s.step,
           reinterpret_cast<const int*>(s.buffers + NEXT), s.chosen);
    s.launches++;
}
const Captured& capture_step(Session& s, const Counts& counts) {
    auto found = s.captured.find(counts);
    if (found != s.captured.end()) return found->second;
    double start = seconds();
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    check(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    issue_step(s, counts);
    check(cudaStreamEndCapture(s.stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    s.counters.captures++;
    s.counters.capture += seconds() - start;
    return s.captured[counts] = {ready, s.launches};
}
void upload_table(Session& s) {
    if (s.known && same_table(*s.table, s.there)) return;
    check(cudaMemcpyAsync(s.step, s.table, sizeof(Step), cudaMemcpyHostToDevice, s.stream), "Step");
    s.counters.uploads++;
}
void start_step(Session& s, const Step& step) {
    const Counts counts = {bucket(step.rows, MAX_ROWS), bucket(step.wanted, MAX_WANTED),
                           page_bucket(step)};
//% if options.timed
    s.last = counts;
//% endif
//% if options.ranges
    const ProfilerRange range(step.rows == 1 ? "step of one row" : "step of several rows");
//% endif
    if (!s.graphs) {
        issue_step(s, counts);
        s.counters.launches += size_t(s.launches);
        return;
    }
    const Captured& ready = capture_step(s, counts);
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
// Queues a step behind what the stream has; its tokens will be in s.chosen, at `turn`. No copy
// brings them: between two steps it would cost as much as a launch.
void queue_step(Session& s, const Step& step, int turn) {
    start_step(s, step);
    check(cudaEventRecord(s.done[turn], s.stream), "cudaEventRecord");
}
// What `advance` makes of a table's positions.
Step successor(Step step) {
    for (int i = 0; i < step.rows; i++) step.pos[i]++;
    return step;
}
// Runs the step that s.table says; its tokens are in the result, its logits in s.logits. followed:
// the next step has the same rows, one position on, unless a sequence stops.
const int* run_step(Session& s, const Taken& taken, bool followed) {
    double start = seconds(), capture = s.counters.capture;
    const bool queued = s.ahead && s.known && same_table(*s.table, s.there);
    if (s.ahead && !queued) {  // a sequence stopped: what the queued step did is of no use
        check(cudaStreamSynchronize(s.stream), "a step");
        s.known = false;
    }
    if (!queued) {
        s.table->turn = s.turn;
        upload_table(s);
        queue_step(s, *s.table, s.turn);
        copy_back(s, s.logits, LOGITS, size_t(s.table->wanted) * VOCAB * sizeof(float), "logits");
    }
    s.ahead = followed;
    if (followed) queue_step(s, successor(*s.table), 1 - s.turn);
    if (followed) check(cudaEventSynchronize(s.done[s.turn]), "a step");
    else check(cudaStreamSynchronize(s.stream), "a step");
    const int* next = s.chosen + s.turn * MAX_WANTED;
    s.there = *s.table;
    s.known = advance_table(s.there, next);
    s.turn = 1 - s.turn;
    count_step(s.counters, taken, seconds() - start - (s.counters.capture - capture));
    return next;
}
// Whether the next step has a row of each sequence of this one and no other, unless one stops.
bool is_followed(const Session& session, const Taken& taken,
                 const std::vector<Sequence>& sequences, int n) {
    const Step& step = *session.table;
    if (!session.graphs || session.logits || step.rows != step.wanted) return false;
    size_t running = 0;
    for (const Sequence& s : sequences) running += s.running();
    if (running != taken.rows.size()) return false;
    for (int i = 0; i < step.rows; i++) {
        const Sequence& s = sequences[size_t(taken.rows[size_t(i)].sequence)];
        if (step.want[i] != i || s.rows != s.tokens.size()) return false;
        if (s.tokens.size() - s.prompt + 1 >= size_t(n)) return false;
    }
    return true;
}
void open_session(Session& s, const MemoryPlan& plan, bool with_logits) {
    s.table = pinned_array<Step>(1);
    memset(s.table, 0, sizeof(Step));
    s.chosen = pinned_array<int>(2 * MAX_WANTED);
    for (cudaEvent_t& event : s.done)
        check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    s.table->keep_logits = with_logits || s.recorder;
    if (with_logits) s.logits = pinned_array<float>(size_t(MAX_WANTED) * VOCAB);
    open_memory(s, plan, *s.table);
}
void close_session(Session& s) {
    check(cudaStreamSynchronize(s.stream), "the last step");
    for (auto& [counts, ready] : s.captured)
        check(cudaGraphExecDestroy(ready.graph), "cudaGraphExecDestroy");
    close_memory(s, s.table->pages);
    for (cudaEvent_t event : s.done) check(cudaEventDestroy(event), "cudaEventDestroy");
    for (void* memory : {static_cast<void*>(s.table), static_cast<void*>(s.chosen),
                         static_cast<void*>(s.logits)})
        if (memory) check(cudaFreeHost(memory), "cudaFreeHost");
}
