// An op program's inputs as bytes for the device, and its results as text.

size_t elements(const Value& v) {
    size_t count = 1;
    for (int i = 0; i < v.rank; i++) count *= size_t(v.shape[i]);
    return count;
}
std::vector<int64_t> shape_of(const Value& v) {
    return std::vector<int64_t>(v.shape, v.shape + v.rank);
}
template <class T>
void put_bytes(std::vector<uint8_t>& out, size_t i, T value) {
    memcpy(&out[i * sizeof value], &value, sizeof value);
}
void put_number(std::vector<uint8_t>& out, size_t i, const char* dtype, double v) {
    if (!strcmp(dtype, "f32")) put_bytes(out, i, float(v));
    if (!strcmp(dtype, "f16")) put_bytes(out, i, narrow(v, 10, -14));
    if (!strcmp(dtype, "bf16")) put_bytes(out, i, narrow(v, 7, -126));
}
void put_integer(std::vector<uint8_t>& out, size_t i, const char* dtype, long long v) {
    if (!strcmp(dtype, "i32")) put_bytes(out, i, int32_t(v));
    if (!strcmp(dtype, "i64")) put_bytes(out, i, int64_t(v));
}
// Literals, one scalar for all, or the default pattern, as elements of `dtype`.
std::vector<uint8_t> declared_numbers(const Input& input, const char* dtype) {
    const Value& v = input.value;
    std::vector<uint8_t> out(elements(v) * element_of(dtype).stored);
    for (size_t i = 0; i < elements(v); i++) {
        long long pattern = (long long)(i % 7) - 3;
        size_t at = input.fill == 2 ? i : 0;
        if (dtype[0] == 'i') {
            put_integer(out, i, dtype, input.fill ? input.integers[at] : pattern);
        } else {
            double number = input.fill == 2 ? input.literals[i] : input.scalar;
            put_number(out, i, dtype, input.fill ? number : double(pattern) * 0.5);
        }
    }
    return out;
}
std::vector<uint8_t> declared_input(const Input& input) {
    const Blocks* format = blocks_of(input.value.dtype);
    return format ? encoded(*format, declared_numbers(input, "f32"))
                  : declared_numbers(input, input.value.dtype);
}
std::vector<uint8_t> input_from_file(const Value& v, const std::string& path) {
    Npy array = read_npy(path);
    const Blocks* format = blocks_of(v.dtype);
    check_npy(array, element_of(format ? "f32" : v.dtype), shape_of(v));
    if (format) return encoded(*format, array.data);
    if (strcmp(v.dtype, "bf16")) return array.data;
    std::vector<uint8_t> out(array.data.size() / 2);
    for (size_t i = 0; i < out.size(); i += 2) {
        if (array.data[2 * i] || array.data[2 * i + 1])
            fail(USAGE, "%s: numbers of bf16 are needed, element %zu is none", path.c_str(), i / 2);
        memcpy(&out[i], &array.data[2 * i + 2], 2);
    }
    return out;
}
// The rows input as a table: sequence and position of each row.
void set_rows(Step& step, const Input* input, const std::string& path) {
    step.rows = MAX_ROWS;
    step.wanted = MAX_WANTED;
    for (int i = 0; i < MAX_WANTED; i++) step.want[i] = i;
    for (int i = 0; i < MAX_ROWS; i++) {
        bool given = input && path.empty() && input->fill == 2;
        step.seq[i] = given ? int(input->literals[2 * i]) : 0;
        step.pos[i] = given ? int(input->literals[2 * i + 1]) : i;
        step.token[i] = 0;
    }
    if (path.empty()) return;
    Npy array = read_npy(path);
    check_npy(array, element_of("i32"), {MAX_ROWS, 2});
    for (int i = 0; i < MAX_ROWS; i++) {
        memcpy(&step.seq[i], &array.data[size_t(i) * 8], 4);
        memcpy(&step.pos[i], &array.data[size_t(i) * 8 + 4], 4);
    }
}
// The shortest decimal that reads back as the same float.
template <class T>
std::string number_text(T v) {
    char text[48];
    if (v != v) return "nan";
    return std::string(text, std::to_chars(text, text + sizeof text, v).ptr);
}
std::string element_text(const char* dtype, const uint8_t* at, size_t i) {
    if (!strcmp(dtype, "f32")) return number_text(reinterpret_cast<const float*>(at)[i]);
    if (!strcmp(dtype, "i32")) return number_text(reinterpret_cast<const int32_t*>(at)[i]);
    if (!strcmp(dtype, "i64")) return number_text(reinterpret_cast<const int64_t*>(at)[i]);
    uint16_t bits = reinterpret_cast<const uint16_t*>(at)[i];
    return number_text(float(strcmp(dtype, "f16") ? widen(bits, 7, -126) : widen(bits, 10, -14)));
}
std::string result_text(const Value& v, const std::vector<uint8_t>& bytes) {
    std::string out = std::string(v.name) + ": " + type_text(v) + "\n";
    for (size_t i = 0; i < elements(v); i++) out += element_text(v.dtype, bytes.data(), i) + "\n";
    return out;
}
