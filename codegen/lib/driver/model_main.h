// A model's main: options, checkpoint, memory, then steps until every sequence has ended.

std::vector<Sequence> open_sequences(const std::vector<std::vector<int>>& prompts) {
    std::vector<Sequence> sequences;
    for (const std::vector<int>& prompt : prompts) sequences.push_back({prompt, prompt.size()});
    return sequences;
}
// Hands a step's tokens to the sequences whose last rows were in it, and prints them.
void take_tokens(const Options& o, const Taken& taken, const int* next,
                 std::vector<Sequence>& sequences, Output& output) {
    for (size_t i = 0; i < taken.wanted.size(); i++) {
        size_t index = size_t(taken.wanted[i].sequence);
        Sequence& s = sequences[index];
        if (size_t(taken.wanted[i].position) + 1 != s.tokens.size()) continue;
        if (next[i] < 0 || next[i] >= VOCAB)
            fail(70, "a token of the vocabulary is needed, %d was chosen", next[i]);
        if (take_token(s, next[i], o.n, o.stop)) output.token(index, next[i]);
        if (s.end) output.end(index);
    }
}
//% if options.dump
// What sequences that have ended left in the caches, before another one gets their slots.
void record_ended(Session& s, std::vector<Sequence>& sequences) {
    for (size_t i = 0; i < sequences.size(); i++) {
        Sequence& ended = sequences[i];
        if (!ended.end || ended.slot < 0) continue;
        std::vector<RowOf> places;
        for (size_t at = 0; at < ended.rows; at++) {
            places.push_back({ended.slot, int(at)});
            s.recorder->held.push_back({int(i), int(at)});
        }
        record_caches(s, *s.recorder, places, s.table->pages_per_seq);
        ended.slot = -1;
    }
}
//% endif
void generate(Session& session, const Options& o, int slots, std::vector<Sequence>& sequences,
              Output& output, LogitsFile& logits) {
    size_t prompts = 0;
    for (const Sequence& s : sequences) prompts += s.prompt;
    Progress progress{"prompts"};
    while (!interrupted && admit(sequences, slots)) {
        Taken taken = plan_step(sequences, o.chunk, o.all_logits, *session.table);
        if (Recorder* recorder = session.recorder) {
            recorder->step_rows = taken.rows.size();
            recorder->step_wanted = taken.wanted.size();
            recorder->rows.insert(recorder->rows.end(), taken.rows.begin(), taken.rows.end());
            recorder->wanted.insert(recorder->wanted.end(), taken.wanted.begin(),
                                    taken.wanted.end());
        }
        if (taken.prompt_rows) progress.show(session.counters.prompt_rows, prompts);
        const int* next = run_step(session, taken, is_followed(session, taken, sequences, o.n));
        if (session.counters.prompt_rows == prompts) progress.end();
        if (session.logits) logits.add(taken.wanted, session.logits);
        take_tokens(o, taken, next, sequences, output);
//% if options.dump
        if (session.recorder) record_ended(session, sequences);
//% endif
    }
}
// What is asked for beside the tokens.
void open_extras(Session& session, const Options& o, const std::vector<Sequence>& sequences,
                 Recorder& recorder, LogitsFile& logits) {
    if (!o.logits_file.empty()) logits.open(o.logits_file, sequences, o.n, o.all_logits);
    files_are_due = !o.logits_file.empty() || !o.dump.empty();
    session.graphs = o.graphs && o.dump.empty();
    if (o.dump.empty()) return;
    make_folder(o.dump_dir);
    session.recorder = &recorder;
    session.after = record_launch;
}
// Steps until everything is done that was asked for.
void work(Session& session, const Options& o, int slots, std::vector<Sequence>& sequences,
          Output& output, LogitsFile& logits) {
    if (!o.bench.empty()) return bench(session, o);
    generate(session, o, slots, sequences, output, logits);
    output.end_all();
}
int run_model(const Options& o) {
    Session session{};
    Recorder recorder = open_recorder(o.dump);
    std::vector<Sequence> sequences = open_sequences(o.prompts);
    double start = seconds();
    open_device(session, o.device);
    std::string device = device_name(o.device);
    print_first_line(o, device);
//% if options.ranges
    if (!HAS_RANGES) fprintf(stderr, "%s: %s\n", PROGRAM, NO_RANGES);
//% endif
    Gguf file = o.synthetic ? synthetic_checkpoint() : gguf_open(o.weights.c_str());
    if (!o.synthetic) check_checkpoint(file);
    Output output(sequences.size(), o.text ? vocabulary_open(file) : Vocabulary(), o.text);
    size_t chunk = chunk_bytes(file);
    int slots = std::clamp(int(sequences.size()), 1, MAX_SEQS);
    MemoryPlan plan = plan_memory(WEIGHT_BYTES, 2 * chunk, slots, o.context);
    print_memory(stderr, plan);
    check_memory(plan);
    LogitsFile logits;
    open_extras(session, o, sequences, recorder, logits);
    open_session(session, plan, !o.logits_file.empty());
    load_weights(session, file, chunk, o.seed);
    session.counters.load = seconds() - start;
    // With staging, which is freed by now; the host's figure is of the most that there was.
    size_t loaded = memory_in_use() + (ON_HOST ? 0 : plan.staging);
    work(session, o, slots, sequences, output, logits);
//% if options.timed
    if (!interrupted && !o.times.empty()) write_times(session, o);
//% endif
    if (!interrupted && !o.logits_file.empty()) logits.close();
    if (!interrupted && !o.dump.empty()) write_dumps(recorder, o.dump_dir);
    session.counters.peak = std::max(loaded, memory_in_use());
    if (!o.bench.empty() && !interrupted) session.counters.read_rate = read_rate(session.stream);
    if (o.bench.empty()) print_summary(session.counters, sequences);
    if (o.json) print_json(o, device, plan, session.counters, sequences);
    close_session(session);
    if (file.data) munmap(const_cast<uint8_t*>(file.data), file.size);
    return interrupted ? INTERRUPTED : 0;
}
int main(int count, char** words) {
    watch_signals();
    Options options = read_options(count, words);
    if (options.info) {
        print_info(options);
        return 0;
    }
    return run_model(options);
}
