// What a program says of itself: kernels and values for --info, JSON for --json, progress.
void print_kernels(FILE* out) {
    int launches = 0;
    for (int k = 0; k < KERNEL_COUNT; k++) launches += KERNELS[k].launches;
    fprintf(out, "%d kernels, %d launches a step:\n", KERNEL_COUNT, launches);
    for (int k = 0; k < KERNEL_COUNT; k++)
        fprintf(out, "  %4d  %s\n", KERNELS[k].launches, KERNELS[k].name);
}
void print_value(FILE* out, const char* name, const std::string& type, int first, int count) {
    fprintf(out, "  %s: %s", name, type.c_str());
    if (strstr(name, "%d")) fprintf(out, ", %d to %d", first, first + count - 1);
    fputc('\n', out);
}
void print_values(FILE* out) {
    fprintf(out, "values that --dump knows:\n");
    for (int v = 0; v < VALUE_COUNT; v++)
        print_value(out, VALUES[v].name, type_text(VALUES[v]), VALUES[v].first, VALUES[v].count);
//% if options.dump
    for (int v = 0; v < CACHE_VALUE_COUNT; v++) {
        const CacheValue& cache = CACHE_VALUES[v];
        std::string entry = std::to_string(cache.shape[0]) + ", " + std::to_string(cache.shape[1]);
        std::string type = std::string(cache.dtype) + "[positions, " + entry + "]";
        print_value(out, cache.name, type, cache.first, cache.count);
    }
//% endif
}
// {"key": value, ...}
struct Json {
    std::string text = "{";
    void add(const char* key, const std::string& value) {
        text += (text.size() > 1 ? ", \"" : "\"") + std::string(key) + "\": " + value;
    }
    void add_text(const char* key, std::string_view value) {
        std::string out = "\"";
        for (char c : value) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", uint8_t(c));
            out +=
                uint8_t(c) < 32 || c == '"' || c == '\\' ? std::string(escaped) : std::string(1, c);
        }
        add(key, out + "\"");
    }
    void add_count(const char* key, size_t value) { add(key, std::to_string(value)); }
    void add_real(const char* key, double value) {
        char out[32];
        snprintf(out, sizeof out, "%.6g", value);
        add(key, out);
    }
};
// How far a long stage is, where a person looks at it and it takes over a second.
struct Progress {
    const char* what;
    double start = seconds();
    bool shown = false;
    void show(size_t done, size_t all) {
        if (!isatty(2) || seconds() - start < 1) return;
        fprintf(stderr, "\r%s: %zu %%", what, done * 100 / std::max<size_t>(all, 1));
        shown = true;
    }
    void end() {
        if (shown) fputs("\r\x1b[K", stderr);
        shown = false;
    }
};
