// gguf_open: maps a GGUF file and checks every length, count and offset against the file before it is
// used. A fault ends by fail(CHECKPOINT, ...): "path: what is needed, what was given, at byte offset".
// monocu's runtime/gguf_header.py is the same walk: same rules, same order, same words.
// Needs: system.h fail.h utf8.h gguf.h.
struct GgufType {
    uint32_t id;
    uint32_t block;  // weights
    uint32_t bytes;  // of a block
};
static constexpr GgufType GGUF_TYPES[] = {
    {0, 1, 4},      {1, 1, 2},      {2, 32, 18},    {3, 32, 20},    {6, 32, 22},    {7, 32, 24},
    {8, 32, 34},    {10, 256, 84},  {11, 256, 110}, {12, 256, 144}, {13, 256, 176}, {14, 256, 210},
    {16, 256, 66},  {17, 256, 74},  {18, 256, 98},  {19, 256, 50},  {20, 32, 18},   {21, 256, 110},
    {22, 256, 82},  {23, 256, 136}, {24, 1, 1},     {25, 1, 2},     {26, 1, 4},     {27, 1, 8},
    {28, 1, 8},     {29, 256, 56},  {30, 1, 2},     {34, 256, 54},  {35, 256, 66},  {39, 32, 17},
    {40, 64, 36},   {41, 128, 18},  {42, 64, 18},
};
static constexpr uint32_t GGUF_KINDS = 13;  // of values
static constexpr uint32_t GGUF_KIND_BYTES[GGUF_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
static constexpr const char* GGUF_KIND_NAMES[GGUF_KINDS] = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};
static constexpr uint64_t GGUF_MAX_COUNT = 1u << 16;     // of keys, of tensors
static constexpr uint64_t GGUF_MAX_KEY = (1u << 16) - 1; // bytes
static constexpr uint64_t GGUF_MAX_STRING = 1u << 24;    // bytes
static constexpr uint64_t GGUF_MAX_ELEMENTS = 1u << 23;  // of all arrays together
static constexpr uint64_t GGUF_MAX_NAME = 127;           // bytes
static constexpr uint64_t GGUF_MAX_DIM = 1ull << 31;
static constexpr uint64_t GGUF_MAX_SIZE = 1ull << 48;    // elements of a tensor

// A cursor over the header; every read is checked against the file's end first.
struct GgufWalk {
    Gguf& file;
    uint64_t at = 0;
    uint64_t elements = 0;  // of the arrays so far
    int64_t element = -1;   // of the string array that is being read
    uint64_t alignment = 32;
    [[noreturn]] __attribute__((format(printf, 3, 4))) void stop(uint64_t where, const char* format,
                                                                 ...) const {
        char message[1024];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        fail(CHECKPOINT, "%s: %s, at byte offset %llu", file.path.c_str(), message, ull(where));
    }
    std::string label(const std::string& what) const {
        return element < 0 ? what : "element " + std::to_string(element) + " of " + what;
    }
    void need(uint64_t count, const std::string& what) const {
        if (count <= file.size - at) return;
        stop(at, "%s: %llu bytes are needed, %llu are left", label(what).c_str(), ull(count),
             ull(file.size - at));
    }
    template <class T>
    T number(const std::string& what) {
        need(sizeof(T), what);
        at += sizeof(T);
        return gguf_load<T>(file.data + at - sizeof(T));
    }
    // A length and as many bytes of UTF-8.
    std::string_view text(const std::string& what, uint64_t limit) {
        uint64_t start = at, size = number<uint64_t>(what);
        if (size > limit)
            stop(start, "%s: at most %llu bytes are needed, %llu were given", label(what).c_str(),
                 ull(limit), ull(size));
        need(size, what);
        const uint8_t* from = file.data + at;
        if (!utf8_valid(from, size))
            stop(start, "%s: UTF-8 is needed, %s was given", label(what).c_str(),
                 shown({reinterpret_cast<const char*>(from), size}).c_str());
        at += size;
        return std::string_view(reinterpret_cast<const char*>(from), size);
    }
    uint64_t count(const char* what) {
        uint64_t start = at, count = number<uint64_t>(what);
        if (count > GGUF_MAX_COUNT)
            stop(start, "%s: at most %llu is needed, %llu was given", what, ull(GGUF_MAX_COUNT),
                 ull(count));
        return count;
    }
    void bools(uint64_t start, uint64_t count, const std::string& what) const {
        for (uint64_t i = start; i < start + count; i++)
            if (file.data[i] > 1)
                stop(i, "%s: a bool of 0 or 1 is needed, %u was given", what.c_str(), file.data[i]);
    }
    void key(uint64_t index) {
        uint64_t start = at;
        std::string name(text("key " + std::to_string(index), GGUF_MAX_KEY));
        if (name.empty()) stop(start, "key %llu: a name is needed, \"\" was given", ull(index));
        std::string what = "key " + shown(name);
        if (file.meta.count(name))
            stop(start, "%s: one value is needed, a second was given", what.c_str());
        file.meta.emplace(name, value(name, what));
    }
    GgufValue value(const std::string& name, const std::string& what) {
        uint64_t start = at;
        uint32_t kind = number<uint32_t>(what);
        if (kind >= GGUF_KINDS)
            stop(start, "%s: a value type of 0 to 12 is needed, %u was given", what.c_str(), kind);
        bool aligns = name == "general.alignment";
        uint32_t needed = aligns ? GGUF_U32 : name == "general.architecture" ? GGUF_STRING : kind;
        if (kind != needed)
            stop(start, "%s: a %s is needed, a %s was given", what.c_str(), GGUF_KIND_NAMES[needed],
                 GGUF_KIND_NAMES[kind]);
        if (kind == GGUF_ARRAY) return array(what);
        start = at;
        if (kind == GGUF_STRING) {
            text(what, GGUF_MAX_STRING);
            return {kind, false, 1, start};
        }
        need(GGUF_KIND_BYTES[kind], what);
        at += GGUF_KIND_BYTES[kind];
        if (kind == GGUF_BOOL) bools(start, 1, what);
        if (aligns) {
            alignment = gguf_load<uint32_t>(file.data + start);
            if (alignment < 8 || alignment > 4096 || (alignment & (alignment - 1)))
                stop(start, "%s: a power of two from 8 to 4096 is needed, %llu was given",
                     what.c_str(), ull(alignment));
        }
        return {kind, false, 1, start};
    }
    GgufValue array(const std::string& what) {
        uint64_t start = at;
        uint32_t kind = number<uint32_t>(what);
        if (kind >= GGUF_KINDS || kind == GGUF_ARRAY)
            stop(start, "%s: an element type of 0 to 12, not 9 (array), is needed, %u was given",
                 what.c_str(), kind);
        start = at;
        uint64_t count = number<uint64_t>(what);
        if (count > GGUF_MAX_ELEMENTS - elements)
            stop(start, "%s: at most %llu array elements in a file are needed, %llu and %llu were given",
                 what.c_str(), ull(GGUF_MAX_ELEMENTS), ull(elements), ull(count));
        elements += count;
        start = at;
        uint64_t least = count * (kind == GGUF_STRING ? 8 : GGUF_KIND_BYTES[kind]);
        need(least, what);
        if (kind != GGUF_STRING) at += least;
        if (kind == GGUF_BOOL) bools(start, count, what);
        for (uint64_t i = 0; kind == GGUF_STRING && i < count; i++) {
            element = int64_t(i);
            text(what, GGUF_MAX_STRING);
        }
        element = -1;
        return {kind, true, count, start};
    }
    std::string tensor_name(uint64_t index) {
        uint64_t start = at;
        std::string what = "tensor " + std::to_string(index) + "'s name";
        std::string name(text(what, GGUF_MAX_NAME));
        bool plain = !name.empty() && name.find("..") == std::string::npos;
        for (char c : name)
            plain = plain && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') || (c && strchr("_.-/", c)));
        if (!plain)
            stop(start, "%s: letters, digits and \"_.-/\" without \"..\" are needed, %s was given",
                 what.c_str(), shown(name).c_str());
        if (file.tensors.count(name))
            stop(start, "tensor \"%s\": one entry is needed, a second was given", name.c_str());
        return name;
    }
    // What follows a tensor's name; its data is set when the data's start is known.
    GgufTensor tensor(const std::string& name, uint64_t& offset) {
        const char* of = name.c_str();
        std::string what = "tensor \"" + name + "\"";
        uint64_t start = at;
        uint32_t rank = number<uint32_t>(what);
        if (rank < 1 || rank > 4)
            stop(start, "tensor \"%s\": 1 to 4 dimensions are needed, %u were given", of, rank);
        GgufTensor t = {name, 0, int(rank), {1, 1, 1, 1}, nullptr, 0};
        for (int i = t.dims - 1; i >= 0; i--) t.shape[i] = dimension(what);
        uint64_t size = 1;
        for (uint64_t dim : t.shape) {
            if (dim > GGUF_MAX_SIZE / size)
                stop(start, "tensor \"%s\": at most %llu elements are needed, more were given", of,
                     ull(GGUF_MAX_SIZE));
            size *= dim;
        }
        start = at;
        t.type = number<uint32_t>(what);
        const GgufType* type = nullptr;
        for (const GgufType& known : GGUF_TYPES)
            if (known.id == t.type) type = &known;
        if (!type)
            stop(start, "tensor \"%s\": a tensor type of ggml is needed, %u was given", of, t.type);
        uint64_t row = t.shape[t.dims - 1];
        if (row % type->block)
            stop(start, "tensor \"%s\": rows of whole blocks of %u are needed, rows of %llu were given",
                 of, type->block, ull(row));
        t.bytes = size / type->block * type->bytes;
        offset = number<uint64_t>(what);
        return t;
    }
    uint64_t dimension(const std::string& what) {
        uint64_t start = at, dim = number<uint64_t>(what);
        if (dim < 1 || dim > GGUF_MAX_DIM)
            stop(start, "%s: dimensions of 1 to %llu are needed, %llu was given", what.c_str(),
                 ull(GGUF_MAX_DIM), ull(dim));
        return dim;
    }
    void extent(const GgufTensor& t, uint64_t offset, uint64_t start, uint64_t field) const {
        bool fits = offset <= file.size && t.bytes <= file.size - offset &&
                    start <= file.size - offset - t.bytes;
        if (!fits)
            stop(field, "tensor \"%s\": %llu bytes at data offset %llu are needed, the file has %llu bytes",
                 t.name.c_str(), ull(t.bytes), ull(offset), ull(file.size));
    }
    void all_tensors(uint64_t count) {
        struct Place {
            GgufTensor* tensor;
            uint64_t offset, field;  // in the data; of the entry's offset field in the file
        };
        std::vector<Place> places;
        uint64_t end = 0, offset = 0;
        for (uint64_t i = 0; i < count; i++) {
            std::string name = tensor_name(i);
            GgufTensor t = tensor(name, offset);
            if (offset % alignment)
                stop(at - 8, "tensor \"%s\": an offset that is a multiple of %llu is needed, %llu was given",
                     name.c_str(), ull(alignment), ull(offset));
            extent(t, offset, 0, at - 8);
            if (offset < end)
                stop(at - 8,
                     "tensor \"%s\": an offset of at least %llu, the end of the tensor before, is needed, "
                     "%llu was given",
                     name.c_str(), ull(end), ull(offset));
            end = offset + t.bytes;
            places.push_back({&file.tensors.emplace(name, t).first->second, offset, at - 8});
        }
        uint64_t start = (at + alignment - 1) / alignment * alignment;
        for (const Place& place : places) {
            extent(*place.tensor, place.offset, start, place.field);
            place.tensor->data = file.data + start + place.offset;
        }
    }
    void walk() {
        if (file.size < 4 || memcmp(file.data, "GGUF", 4))
            stop(0, "magic: \"GGUF\" is needed, %s was given",
                 shown({reinterpret_cast<const char*>(file.data), std::min<size_t>(file.size, 4)}).c_str());
        at = 4;
        uint32_t version = number<uint32_t>("version");
        if (version == 2u << 24 || version == 3u << 24)
            stop(4, "version: a little-endian file is needed, a big-endian one was given");
        if (version != 2 && version != 3) stop(4, "version: 2 or 3 is needed, %u was given", version);
        uint64_t tensor_count = count("tensor count"), key_count = count("key count");
        for (uint64_t i = 0; i < key_count; i++) key(i);
        all_tensors(tensor_count);
    }
};
// NOTE: a file that somebody shortens while it is mapped kills the process (SIGBUS).
static inline Gguf gguf_open(const char* path) {
    Gguf file;
    file.path = path;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO would wait for its writer
    if (fd < 0) fail(CHECKPOINT, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat status;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode)) fail(CHECKPOINT, "%s: a regular file is needed", path);
    file.size = uint64_t(status.st_size);
    if (file.size) {
        void* mapped = mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (mapped == MAP_FAILED) fail(CHECKPOINT, "%s: cannot be mapped: %s", path, strerror(errno));
        file.data = static_cast<const uint8_t*>(mapped);
    }
    close(fd);
    GgufWalk{file}.walk();
    return file;
}
