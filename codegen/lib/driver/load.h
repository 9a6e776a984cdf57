// The checkpoint: metadata and every tensor checked against what was compiled, then streamed to the device.
// Raw rows go through two pinned chunks, so that reading, copying and repacking overlap.
constexpr size_t CHUNK_BYTES = 16 << 20;

std::string shape_text(int dims, const uint64_t* shape) {
    std::string out;
    for (int i = 0; i < dims; i++) out += (i ? ", " : "[") + std::to_string(shape[i]);
    return out + "]";
}
const char* type_name(uint32_t type) {
    for (const Family& family : WEIGHTS)
        if (family.type == type) return family.format;
    return nullptr;
}
// What is wrong with a tensor, or nothing.
std::string tensor_fault(const Family& family, const std::string& name, const GgufTensor* t) {
    std::string need = "tensor " + shown(name) + ": " + family.format +
                       shape_text(family.dims, family.shape) + " is needed, ";
    if (!t) return need + "it is not there";
    bool same = t->type == family.type && t->dims == family.dims;
    for (int i = 0; i < family.dims; i++) same = same && t->shape[i] == family.shape[i];
    if (same) return "";
    const char* type = type_name(t->type);
    std::string given = type ? type : "type " + std::to_string(t->type);
    return need + given + shape_text(t->dims, t->shape) + " was given";
}
void check_checkpoint(const Gguf& file) {
    std::vector<std::string> faults = metadata_faults(file);
    for (int f = 0; f < WEIGHT_COUNT; f++)
        for (int i = WEIGHTS[f].first; i < WEIGHTS[f].first + WEIGHTS[f].count; i++) {
            std::string name = name_of(WEIGHTS[f].name, i);
            std::string fault = tensor_fault(WEIGHTS[f], name, file.find(name));
            if (!fault.empty()) faults.push_back(fault);
        }
    if (faults.empty()) return;
    std::string said;
    for (size_t i = 0; i < faults.size() && i < 4; i++) said += (i ? "; " : " ") + faults[i];
    if (faults.size() > 4) said += "; and " + std::to_string(faults.size() - 4) + " more";
    fail(CHECKPOINT, "%s: not the checkpoint that this program was compiled for:%s",
         file.path.c_str(), said.c_str());
}
uint64_t rows_of(const GgufTensor& t) {
    uint64_t rows = 1;
    for (int i = 0; i + 1 < t.dims; i++) rows *= t.shape[i];
    return rows;
}
// Bytes of one chunk: eight rows of every tensor fit.
size_t chunk_bytes(const Gguf& file) {
    uint64_t most = CHUNK_BYTES;
    for (int f = 0; f < WEIGHT_COUNT; f++) {
        const GgufTensor* t = file.find(name_of(WEIGHTS[f].name, WEIGHTS[f].first));
        most = std::max(most, t->bytes / rows_of(*t) * std::min<uint64_t>(8, rows_of(*t)));
    }
    return most;
}
struct Loader {
    cudaStream_t stream;
    size_t bytes;   // of a chunk
    uint32_t seed;  // of a tensor that is in no file
    uint8_t* pinned[2];
    uint8_t* raw[2];      // the same chunks on the device
    cudaEvent_t free[2];  // recorded when a chunk may be filled again
    int turn = 0;
    size_t done = 0;  // bytes

    Loader(cudaStream_t on, size_t chunk, uint32_t synthetic)
        : stream(on), bytes(chunk), seed(synthetic) {
        for (int i = 0; i < 2; i++) {
            pinned[i] = pinned_array<uint8_t>(bytes);
            raw[i] = device_array<uint8_t>(bytes);
            check(cudaEventCreateWithFlags(&free[i], cudaEventDisableTiming),
                  "cudaEventCreateWithFlags");
            check(cudaEventRecord(free[i], stream), "cudaEventRecord");
        }
    }
    void close() {
        check(cudaStreamSynchronize(stream), "loading");
        for (int i = 0; i < 2; i++) {
            check(cudaFreeHost(pinned[i]), "cudaFreeHost");
            check(cudaFree(raw[i]), "cudaFree");
            check(cudaEventDestroy(free[i]), "cudaEventDestroy");
        }
    }
    // Rows of a tensor as the checkpoint stores them, to raw[turn].
    void read(const Family& family, const GgufTensor& t, uint64_t row_bytes, uint64_t first,
              uint64_t count) {
        check(cudaEventSynchronize(free[turn]), "loading");
        if (!t.data)
            return synthesize(family, tensor_key(seed, t.name), first, count, raw[turn], stream);
        uint8_t* chunk = pinned[turn];
        memcpy(chunk, t.data + first * row_bytes, count * row_bytes);
        check(cudaMemcpyAsync(raw[turn], chunk, count * row_bytes, cudaMemcpyHostToDevice, stream),
              family.name);
    }
    void rows(const Family& family, const GgufTensor& t, uint64_t row_bytes, uint64_t first,
              uint64_t count, uint8_t* to) {
        read(family, t, row_bytes, first, count);
        repack(family, raw[turn], first, count, to, stream);
        check(cudaEventRecord(free[turn], stream), "cudaEventRecord");
        turn ^= 1;
        done += count * row_bytes;
        if (interrupted) exit(INTERRUPTED);
    }
    // A chunk never crosses an expert and starts at a multiple of eight of its rows.
    void tensor(const Family& family, const GgufTensor& t, uint8_t* to) {
        uint64_t all = rows_of(t), inner = t.dims > 1 ? t.shape[t.dims - 2] : 1;
        uint64_t row_bytes = t.bytes / all, most = bytes / row_bytes;
        if (most < inner) most -= most % 8;
        for (uint64_t entry = 0; entry < all; entry += inner)
            for (uint64_t row = 0; row < inner; row += most)
                rows(family, t, row_bytes, entry + row, std::min(most, inner - row), to);
    }
};
size_t tensors_bytes(const Gguf& file) {
    size_t sum = 0;
    for (int f = 0; f < WEIGHT_COUNT; f++)
        for (int i = 0; i < WEIGHTS[f].count; i++)
            sum += file.find(name_of(WEIGHTS[f].name, WEIGHTS[f].first + i))->bytes;
    return sum;
}
void load_weights(Device& d, const Gguf& file, size_t chunk, uint32_t seed) {
    Loader loader(d.stream, chunk, seed);
    size_t all = tensors_bytes(file);
    Progress progress{"loading"};
    if (file.data) madvise(const_cast<uint8_t*>(file.data), file.size, MADV_WILLNEED);
    for (int f = 0; f < WEIGHT_COUNT; f++)
        for (int i = 0; i < WEIGHTS[f].count; i++) {
            const Family& family = WEIGHTS[f];
            const GgufTensor* t = file.find(name_of(family.name, family.first + i));
            loader.tensor(family, *t, d.weights + family.offset + size_t(i) * family.stride);
            progress.show(loader.done, all);
        }
    loader.close();
    progress.end();
}
