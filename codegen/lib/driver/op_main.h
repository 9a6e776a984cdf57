// An op program's main: inputs up, one forward, results down.

void print_info() {
    printf("%s: numerics %s, buffers %s\ninputs:\n", PROGRAM, NUMERICS, mib(BUFFER_BYTES).c_str());
    for (int i = 0; i < INPUT_COUNT; i++)
        printf("  %s: %s\n", INPUTS[i].value.name, type_text(INPUTS[i].value).c_str());
    printf("results:\n");
    for (int i = 0; i < RESULT_COUNT; i++)
        printf("  %s: %s\n", RESULTS[i].name, type_text(RESULTS[i]).c_str());
    print_kernels(stdout);
    print_values(stdout);
}
Step read_rows(const Options& o) {
    Step step = {};
    const Input* rows = nullptr;
    for (int i = 0; i < INPUT_COUNT; i++)
        if (!strcmp(INPUTS[i].value.dtype, "rows")) rows = &INPUTS[i];
    set_rows(step, rows, rows ? input_file(o, rows->value.name) : "");
    for (int i = 0; i < MAX_ROWS; i++)
        if (step.seq[i] < 0 || step.pos[i] < 0 || step.seq[i] >= 1 << 20 || step.pos[i] >= 1 << 30)
            fail(USAGE,
                 "rows: sequences below 2^20 and positions below 2^30 are needed, "
                 "row %d is [%d, %d]",
                 i, step.seq[i], step.pos[i]);
    return step;
}
MemoryPlan plan_rows(const Step& step) {
    int sequences = 1, context = 1;
    for (int i = 0; i < MAX_ROWS; i++) {
        sequences = std::max(sequences, step.seq[i] + 1);
        context = std::max(context, step.pos[i] + 1);
    }
    return plan_memory(0, 0, sequences, context);
}
// Every input's bytes, read and checked before anything is allocated.
std::vector<std::vector<uint8_t>> read_inputs(const Options& o) {
    std::vector<std::vector<uint8_t>> out;
    for (int i = 0; i < INPUT_COUNT; i++) {
        const Value& v = INPUTS[i].value;
        std::string path = input_file(o, v.name);
        bool rows = !strcmp(v.dtype, "rows");
        out.push_back(rows           ? std::vector<uint8_t>()
                      : path.empty() ? declared_input(INPUTS[i])
                                     : input_from_file(v, path));
    }
    return out;
}
void upload(Device& d, const Step& step, const std::vector<std::vector<uint8_t>>& inputs) {
    check(cudaMemcpyAsync(d.step, &step, sizeof step, cudaMemcpyHostToDevice, d.stream), "Step");
    for (size_t i = 0; i < inputs.size(); i++)
        check(cudaMemcpyAsync(d.buffers + INPUTS[i].value.offset, inputs[i].data(),
                              inputs[i].size(), cudaMemcpyHostToDevice, d.stream),
              INPUTS[i].value.name);
    if (CACHE_BYTES_PER_POSITION > 0)  // entries that nobody wrote are zero
        check(cudaMemsetAsync(d.cache, 0, d.positions * CACHE_BYTES_PER_POSITION, d.stream),
              "cache");
    check(cudaStreamSynchronize(d.stream), "inputs");
}
std::vector<uint8_t> result_bytes(const Device& d, const Value& v) {
    std::vector<uint8_t> bytes(elements(v) * element_of(v.dtype).stored);
    check(cudaMemcpyAsync(bytes.data(), d.buffers + v.offset, bytes.size(), cudaMemcpyDeviceToHost,
                          d.stream),
          v.name);
    check(cudaStreamSynchronize(d.stream), v.name);
    return bytes;
}
void give_results(const Device& d, const std::string& folder) {
    for (int i = 0; i < RESULT_COUNT; i++) {
        const Value& v = RESULTS[i];
        std::vector<uint8_t> bytes = result_bytes(d, v);
        if (folder.empty()) {
            say(result_text(v, bytes));
            continue;
        }
        std::string header = npy_header(element_of(v.dtype).descr, shape_of(v));
        std::vector<uint8_t> data = file_elements(v.dtype, bytes.data(), bytes.size());
        NewFile file = open_file(folder + "/" + v.name + ".npy");
        write_file(file, header.data(), header.size());
        write_file(file, data.data(), data.size());
        close_file(file);
    }
}
void print_json(const std::string& device, int launches, double took) {
    Json json;
    json.add_text("program", PROGRAM);
    json.add_text("numerics", NUMERICS);
    json.add_text("target", device);
    json.add_count("buffer_bytes", BUFFER_BYTES);
    json.add_count("launches", size_t(launches));
    json.add_real("seconds", took);
    fprintf(stderr, "%s}\n", json.text.c_str());
}
// Rows keep their order in dumps.
void record_rows(Recorder& recorder, const Step& step) {
    recorder.step_rows = size_t(step.rows);
    recorder.step_wanted = size_t(step.wanted);
    for (int i = 0; i < step.rows; i++) recorder.rows.push_back({0, i});
    for (int i = 0; i < step.wanted; i++) recorder.wanted.push_back({0, i});
}
int run_program(const Options& o) {
    Recording device{};
    Recorder recorder = open_recorder(o.dump);
    Step step = read_rows(o);
    std::vector<std::vector<uint8_t>> inputs = read_inputs(o);
    for (const std::string& folder : {o.out, o.dump_dir})
        if (!folder.empty()) make_folder(folder);
    files_are_due = !o.dump.empty();
    open_device(device, o.device);
    std::string name = device_name(o.device);
    fprintf(stderr, "%s: numerics %s, target %s\n", PROGRAM, NUMERICS, name.c_str());
    MemoryPlan plan = plan_rows(step);
    check_memory(plan);
    open_memory(device, plan, step);
    upload(device, step, inputs);
    record_rows(recorder, step);
    device.recorder = &recorder;
    if (!o.dump.empty()) device.after = record_launch;
    double start = seconds();
    forward(device, MAX_ROWS, MAX_WANTED);
    check(cudaStreamSynchronize(device.stream), "forward");
    double took = seconds() - start;
    if (interrupted) return INTERRUPTED;
//% if options.dump
    for (int i = 0; i < step.rows; i++) recorder.held.push_back({step.seq[i], step.pos[i]});
    record_caches(device, recorder, recorder.held, plan.pages);
//% endif
    give_results(device, o.out);
    if (!o.dump.empty()) write_dumps(recorder, o.dump_dir);
    if (o.json) print_json(name, device.launches, took);
    close_memory(device, step.pages);
    return 0;
}
int main(int count, char** words) {
    watch_signals();
    Options options = read_options(count, words);
    if (!options.info) return run_program(options);
    print_info();
    return 0;
}
