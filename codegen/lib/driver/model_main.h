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
    Gguf file = gguf_open(o.weights.c_str());
    check_checkpoint(file);
    Output output(sequences.size(), o.text ? vocabulary_open(file) : Vocabulary(), o.text);
    size_t chunk = chunk_bytes(file);
    int slots = std::min(MAX_SEQS, int(sequences.size()));
    MemoryPlan plan = plan_memory(WEIGHT_BYTES, 2 * chunk, slots, o.context);
    print_memory(stderr, plan);
    check_memory(plan);
    LogitsFile logits;
    open_extras(session, o, sequences, recorder, logits);
    open_session(session, plan, !o.logits_file.empty());
    load_weights(session, file, chunk);
    session.counters.load = seconds() - start;
    generate(session, o, slots, sequences, output, logits);
    output.end_all();
//% if options.timed
    if (!interrupted && !o.times.empty()) write_times(session, o);
//% endif
    if (!interrupted && !o.logits_file.empty()) logits.close();
    if (!interrupted && !o.dump.empty()) write_dumps(recorder, o.dump_dir);
    print_summary(session.counters, sequences);
    if (o.json) print_json(o, device, plan, session.counters, sequences);
    close_session(session);
    munmap(const_cast<uint8_t*>(file.data), file.size);
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
