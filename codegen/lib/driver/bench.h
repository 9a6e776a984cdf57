// --bench: every test of a list in one process, on random tokens. A run of a test is a line of JSON on
// standard output; run 0 warms up, so that captures are behind it.

// Token i of the one sequence that all tests share.
int random_token(size_t i) {
    uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    return int((x ^ x >> 27) % uint64_t(VOCAB));
}
// The sequence's first `tokens` tokens, those behind `there` not taken in yet.
std::vector<Sequence> bench_sequence(size_t tokens, size_t there) {
    Sequence s = {{}, tokens, there, 0};
    for (size_t i = 0; i < tokens; i++) s.tokens.push_back(random_token(i));
    return {s};
}
// timed: the next step may be queued behind it, within the time.
void bench_step(Session& session, std::vector<Sequence>& one, int chunk, int n, bool timed = true) {
    Taken taken = plan_step(one, chunk, false, *session.table);
    const int* next = run_step(session, taken, timed && is_followed(session, taken, one, n));
    if (!taken.wanted.empty()) take_token(one[0], next[0], n, {});
}
// Steps until the prompt is in and n - 1 of the tokens chosen behind it are, too; seconds.
double bench_steps(Session& session, std::vector<Sequence>& one, int chunk, int n) {
    double start = seconds();
    while (!interrupted && one[0].running()) bench_step(session, one, chunk, n);
    return seconds() - start;
}
// The cache holds what a test needs before its time begins.
double run_test(Session& session, const Test& test, int chunk) {
    size_t before = size_t(test.before());
    if (!test.decodes) {
        std::vector<Sequence> prompt = bench_sequence(size_t(test.positions()), before);
        return bench_steps(session, prompt, chunk, 0);
    }
    std::vector<Sequence> one = bench_sequence(before, before - 1);
    bench_step(session, one, chunk, test.tokens + 1, false);  // chooses the first token
    return bench_steps(session, one, chunk, test.tokens + 1);
}
void print_run(const Test& test, int run, double took) {
    Json json;
    json.add_text("test", test.name());
    json.add_count("run", size_t(run));
    json.add_count("tokens", size_t(test.tokens));
    json.add_count("ns", size_t(took * 1e9));
    say(json.text + "}\n");
}
void bench(Session& session, const Options& o) {
    size_t filled = 0;  // positions of the cache that hold the sequence
    for (const Test& test : o.bench) {
        size_t before = size_t(test.before());
        if (filled < before) {
            std::vector<Sequence> depth = bench_sequence(before, filled);
            bench_steps(session, depth, o.chunk, 0);
        }
        for (int run = 0; run <= o.repeat && !interrupted; run++) {
            double took = run_test(session, test, o.chunk);
            if (!interrupted) print_run(test, run, took);
        }
        filled = before;  // behind it are tokens that a test chose
    }
}
