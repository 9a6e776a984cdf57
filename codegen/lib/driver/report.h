// What a run says of itself: the first line, --info, the summary and --json.

std::string format_names() {
    std::string out;
    for (int f = 0; f < WEIGHT_COUNT; f++)
        if ((out + " ").find(std::string(" ") + WEIGHTS[f].format + " ") == out.npos)
            out += std::string(" ") + WEIGHTS[f].format;
    return out;
}
void print_first_line(const Options& o, const std::string& device) {
    fprintf(stderr, "%s: numerics %s, kv %s, weights%s, target %s, context %d\n", PROGRAM, NUMERICS,
            KV, format_names().c_str(), device.c_str(), o.context);
}
void print_info(const Options& o) {
    int context = o.context ? o.context : std::max(TRAINED_CONTEXT, 1);
    printf("%s: numerics %s, kv %s, weights%s\n", PROGRAM, NUMERICS, KV, format_names().c_str());
    printf(
        "%d rows a step at most, %d wanted, %d sequences at once; vocabulary %d, trained for %d "
        "tokens\n",
        MAX_ROWS, MAX_WANTED, MAX_SEQS, VOCAB, TRAINED_CONTEXT);
    printf("for one sequence of %d tokens, ", context);
    print_memory(stdout, plan_memory(WEIGHT_BYTES, 0, 1, context));
    print_kernels(stdout);
    print_values(stdout);
}
double rate(size_t count, double time) { return time > 0 ? double(count) / time : 0; }
size_t generated(const std::vector<Sequence>& sequences) {
    size_t sum = 0;
    for (const Sequence& s : sequences) sum += s.tokens.size() - s.prompt;
    return sum;
}
void print_summary(const Counters& c, const std::vector<Sequence>& sequences) {
    fprintf(stderr,
            "%s: %zu tokens in %zu steps; load %.2f s, capture %.2f s, prefill %zu rows %.2f s "
            "(%.1f a second), "
            "decode %zu rows %.2f s (%.1f a second)\n",
            PROGRAM, generated(sequences), c.steps, c.load, c.capture, c.prompt_rows, c.prefill,
            rate(c.prompt_rows, c.prefill), c.decode_rows, c.decode, rate(c.decode_rows, c.decode));
}
std::string token_lists(const std::vector<Sequence>& sequences) {
    std::string out = "[";
    for (const Sequence& s : sequences) {
        out += out.size() > 1 ? ", [" : "[";
        for (size_t i = s.prompt; i < s.tokens.size(); i++)
            out += (i > s.prompt ? ", " : "") + std::to_string(s.tokens[i]);
        out += "]";
    }
    return out + "]";
}
std::string ends(const std::vector<Sequence>& sequences) {
    std::string out = "[";
    for (const Sequence& s : sequences)
        out += std::string(out.size() > 1 ? ", \"" : "\"") + (s.end ? s.end : "interrupted") + "\"";
    return out + "]";
}
// Tokens of each sequence that a step took in: under --logits all as many rows of logits.
std::string rows_taken(const std::vector<Sequence>& sequences) {
    std::string out = "[";
    for (const Sequence& s : sequences) out += (out.size() > 1 ? ", " : "") + std::to_string(s.rows);
    return out + "]";
}
void print_json(const Options& o, const std::string& device, const MemoryPlan& plan,
                const Counters& c, const std::vector<Sequence>& sequences) {
    Json json;
    json.add_text("program", PROGRAM);
    json.add_text("numerics", NUMERICS);
    json.add_text("kv", KV);
    json.add_text("target", device);
    json.add_count("context", size_t(o.context));
    json.add_count("weight_bytes", plan.weights);
    json.add_count("buffer_bytes", plan.buffers);
    json.add_count("cache_bytes", plan.cache());
    json.add_count("peak_bytes", c.peak);
    json.add_count("steps", c.steps);
    json.add_count("prefill_steps", c.prefill_steps);
    json.add_count("launches", c.launches);
    json.add_count("graph_captures", c.captures);
    json.add_count("graph_replays", c.replays);
    json.add_count("step_uploads", c.uploads);
    json.add_count("prompt_tokens", c.prompt_rows);
    json.add_count("generated_tokens", generated(sequences));
    json.add_real("load_seconds", c.load);
    json.add_real("capture_seconds", c.capture);
    json.add_real("prefill_seconds", c.prefill);
    json.add_real("decode_seconds", c.decode);
    json.add_real("prefill_tokens_per_second", rate(c.prompt_rows, c.prefill));
    json.add_real("decode_tokens_per_second", rate(c.decode_rows, c.decode));
    if (c.read_rate > 0) json.add_real("read_bytes_per_second", c.read_rate);
    json.add("tokens", token_lists(sequences));
    json.add("ends", ends(sequences));
    json.add("rows", rows_taken(sequences));
    fprintf(stderr, "%s}\n", json.text.c_str());
}
