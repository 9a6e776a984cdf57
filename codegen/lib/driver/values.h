// Values by name (--dump): copied from the device behind the launch that wrote them, row by row of
// all steps, and written as .npy with the rows in order of sequence and position.
struct RowOf {
    int sequence, position;
};
bool operator<(const RowOf& a, const RowOf& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.position < b.position;
}
struct DumpFile {
    std::string name;   // the value's, for quantized ones with the part's
    const char* dtype;  // of the elements
    int64_t lead;  // -1: a row for each row of the step, -2: for each wanted row, 0: one for all
    std::vector<int64_t> shape;  // of such a row
    size_t offset, row_bytes;    // on the device
    std::vector<uint8_t> bytes;  // so far
};
struct Recorder {
    std::vector<DumpFile> files;
    std::multimap<int, size_t> by_launch;  // a launch's number: files that it writes
    std::vector<RowOf> rows, wanted;       // of all steps so far
    size_t step_rows = 0, step_wanted = 0;
//% if options.dump
    std::vector<DumpFile> caches;
    std::vector<RowOf> held;  // whose entries they have
//% endif
};
struct Recording : Device {
    Recorder* recorder = nullptr;
};

// The name of number i where a name stands for several: its %d filled in.
std::string name_of(const char* name, int i) {
    const char* hole = strstr(name, "%d");
    return hole ? std::string(name, hole) + std::to_string(i) + (hole + 2) : name;
}
std::vector<std::string> patterns(const char* text) {
    std::vector<std::string> out;
    for (std::string_view part : split_commas(text)) out.emplace_back(part);
    return out;
}
// A value's element type and shape: f32[T, 576].
std::string type_text(const Value& v) {
    std::string out = v.dtype;
    for (int i = 0; i < v.rank; i++) {
        out += i ? ", " : "[";
        out += v.shape[i] == -1 ? "T" : v.shape[i] == -2 ? "R" : std::to_string(v.shape[i]);
    }
    return v.rank ? out + "]" : out;
}
// The file of a part of a value: `name`'s suffix, with the last dim divided.
DumpFile dump_file(const Value& v, const std::string& name, const char* dtype, int divide) {
    DumpFile out = {name, dtype, 0, {}, v.offset, element_of(dtype).stored, {}};
    for (int i = 0; i < v.rank; i++) {
        int64_t dim = i + 1 == v.rank ? v.shape[i] / divide : v.shape[i];
        if (i == 0 && dim < 0) out.lead = dim;
        else if (dim < 0) fail(USAGE, "--dump: %s: only a first dim may be T or R", name.c_str());
        else out.shape.push_back(dim), out.row_bytes *= size_t(dim);
    }
    return out;
}
size_t lead_count(int64_t lead, size_t rows, size_t wanted) {
    return lead == -1 ? rows : lead == -2 ? wanted : 1;
}
// A quantized value is several arrays, one after another on the device.
std::vector<DumpFile> dump_files(const Value& v, const std::string& name) {
    bool two = !strcmp(v.dtype, "q8x2");
    if (!two && strcmp(v.dtype, "q8")) return {dump_file(v, name, v.dtype, 1)};
    std::vector<DumpFile> out = {dump_file(v, name + ".words", "i8", 1)};
    if (two) out.push_back(dump_file(v, name + ".low", "i8", 1));
    out.push_back(dump_file(v, name + ".scales", "f32", 32));
    out.push_back(dump_file(v, name + ".sums", "f32", 32));
    size_t offset = v.offset, rows = lead_count(out[0].lead, MAX_ROWS, MAX_WANTED);
    for (DumpFile& part : out) {
        part.offset = offset;
        offset += (rows * part.row_bytes + 255) / 256 * 256;
    }
    return out;
}
std::string stored_names(size_t most) {
    std::vector<const char*> names;
    for (int v = 0; v < VALUE_COUNT; v++) names.push_back(VALUES[v].name);
//% if options.dump
    for (int v = 0; v < CACHE_VALUE_COUNT; v++) names.push_back(CACHE_VALUES[v].name);
//% endif
    std::string out;
    for (size_t i = 0; i < names.size() && i < most; i++) out += std::string(" ") + names[i];
    return names.size() > most ? out + " and more, see --info" : out;
}
//% if options.dump
// Caches that some pattern names; an entry of a position is a row of theirs.
void open_caches(Recorder& out, const std::vector<std::string>& chosen, std::vector<bool>& used) {
    for (int v = 0; v < CACHE_VALUE_COUNT; v++)
        for (int i = 0; i < CACHE_VALUES[v].count; i++) {
            const CacheValue& cache = CACHE_VALUES[v];
            std::string name = name_of(cache.name, cache.first + i);
            bool wanted = false;
            for (size_t p = 0; p < chosen.size(); p++)
                if (chosen[p] == "all" || !fnmatch(chosen[p].c_str(), name.c_str(), 0))
                    wanted = used[p] = true;
            size_t entry = size_t(cache.shape[0] * cache.shape[1]) * element_of(cache.dtype).stored;
            if (wanted)
                out.caches.push_back({name, cache.dtype, -1, {cache.shape[0], cache.shape[1]},
                                      cache.before + size_t(i) * cache.each, entry, {}});
        }
}
// What caches hold at some positions of a slot; of a page [64][HD] stands for each head. Slots have
// their pages one behind another.
void record_caches(const Device& d, Recorder& recorder, const std::vector<RowOf>& places,
                   int pages_per_seq) {
    for (DumpFile& file : recorder.caches) {
        std::vector<uint8_t> page(64 * file.row_bytes);
        size_t there = size_t(-1), head = file.row_bytes / size_t(file.shape[0]);
        for (const RowOf& place : places) {
            size_t first = size_t(place.sequence) * size_t(pages_per_seq);
            size_t stored = first + size_t(place.position) / 64;
            if (stored != there)
                check(cudaMemcpyAsync(page.data(),
                                      d.cache + file.offset * d.positions + stored * page.size(),
                                      page.size(), cudaMemcpyDeviceToHost, d.stream),
                      file.name.c_str());
            check(cudaStreamSynchronize(d.stream), file.name.c_str());
            there = stored;
            for (size_t kv = 0; kv < size_t(file.shape[0]); kv++) {
                const uint8_t* at = &page[(kv * 64 + size_t(place.position) % 64) * head];
                file.bytes.insert(file.bytes.end(), at, at + head);
            }
        }
    }
}
//% endif
// Chooses the values that some pattern names; refuses a pattern that names none.
Recorder open_recorder(const std::vector<std::string>& chosen) {
    Recorder out;
    std::vector<bool> used(chosen.size(), false);
    for (int v = 0; v < VALUE_COUNT; v++)
        for (int i = 0; i < VALUES[v].count; i++) {
            std::string name = name_of(VALUES[v].name, VALUES[v].first + i);
            bool wanted = false;
            for (size_t p = 0; p < chosen.size(); p++)
                if (chosen[p] == "all" || !fnmatch(chosen[p].c_str(), name.c_str(), 0))
                    wanted = used[p] = true;
            if (!wanted) continue;
            for (DumpFile& file : dump_files(VALUES[v], name)) {
                out.by_launch.emplace(VALUES[v].launch + i * VALUES[v].period, out.files.size());
                out.files.push_back(file);
            }
        }
//% if options.dump
    open_caches(out, chosen, used);
//% endif
    for (size_t p = 0; p < chosen.size(); p++)
        if (!used[p])
            fail(USAGE, "--dump: the name of a stored value is needed, %s was given; there are:%s",
                 shown(chosen[p]).c_str(), stored_names(12).c_str());
    return out;
}
// Device.after: copies what this launch wrote.
void record_launch(Device& device, int launch) {
    Recorder& recorder = *static_cast<Recording&>(device).recorder;
    auto [from, to] = recorder.by_launch.equal_range(launch);
    for (; from != to; ++from) {
        DumpFile& file = recorder.files[from->second];
        size_t rows = lead_count(file.lead, recorder.step_rows, recorder.step_wanted);
        if (file.lead == 0) file.bytes.clear();
        size_t before = file.bytes.size(), more = rows * file.row_bytes;
        file.bytes.resize(before + more);
        check(cudaMemcpyAsync(file.bytes.data() + before, device.buffers + file.offset, more,
                              cudaMemcpyDeviceToHost, device.stream),
              file.name.c_str());
        check(cudaStreamSynchronize(device.stream), file.name.c_str());
    }
}
// Elements from the device as a .npy holds them.
std::vector<uint8_t> file_elements(const char* dtype, const uint8_t* from, size_t bytes) {
    std::vector<uint8_t> out(from, from + bytes);
    if (strcmp(dtype, "bf16")) return out;
    out.assign(2 * bytes, 0);
    for (size_t i = 0; i < bytes; i += 2) memcpy(&out[2 * i + 2], from + i, 2);
    return out;
}
void write_dump(const DumpFile& file, const std::vector<RowOf>& rows, const std::string& folder) {
    std::vector<size_t> order(file.lead ? rows.size() : 1);
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    if (file.lead)
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return rows[a] < rows[b]; });
    std::vector<int64_t> shape = file.shape;
    if (file.lead) shape.insert(shape.begin(), int64_t(order.size()));
    NewFile out = open_file(folder + "/" + file.name + ".npy");
    std::string header = npy_header(element_of(file.dtype).descr, shape);
    write_file(out, header.data(), header.size());
    for (size_t i : order) {
        std::vector<uint8_t> row =
            file_elements(file.dtype, &file.bytes[i * file.row_bytes], file.row_bytes);
        write_file(out, row.data(), row.size());
    }
    close_file(out);
}
void write_dumps(const Recorder& recorder, const std::string& folder) {
    for (const DumpFile& file : recorder.files)
        write_dump(file, file.lead == -2 ? recorder.wanted : recorder.rows, folder);
//% if options.dump
    for (const DumpFile& file : recorder.caches) write_dump(file, recorder.held, folder);
//% endif
}
