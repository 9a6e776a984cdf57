// NumPy's .npy files, versions 1 and 2: written in C order, read strictly.
struct Element {
    const char* dtype;  // the language's
    const char* descr;  // NumPy's
    size_t bytes;       // in a file
    size_t stored;      // on the device
};
// NumPy has no bf16: its files hold f32 numbers.
constexpr Element ELEMENTS[] = {{"f32", "<f4", 4, 4}, {"f16", "<f2", 2, 2}, {"bf16", "<f4", 4, 2},
                                {"i32", "<i4", 4, 4}, {"i64", "<i8", 8, 8}, {"i8", "|i1", 1, 1}};
const Element& element_of(const char* dtype) {
    for (const Element& element : ELEMENTS)
        if (!strcmp(element.dtype, dtype)) return element;
    fail(70, "an element type is needed, %s was given", shown(dtype).c_str());
}
std::string npy_shape(const std::vector<int64_t>& shape) {
    std::string out = "(";
    for (int64_t dim : shape) out += std::to_string(dim) + ", ";
    if (shape.size() > 1) out.resize(out.size() - 2);
    if (shape.size() == 1) out.resize(out.size() - 1);
    return out + ")";
}
// The header, `room` bytes long: a later one with other counts has the same length.
std::string npy_header(const char* descr, const std::vector<int64_t>& shape, size_t room = 128) {
    std::string text = std::string("{'descr': '") + descr +
                       "', 'fortran_order': False, 'shape': " + npy_shape(shape) + ", }";
    size_t bytes = std::max(room, (10 + text.size() + 1 + 63) / 64 * 64);
    text.resize(bytes - 10 - 1, ' ');
    std::string out("\x93NUMPY\x01\x00", 8);
    out += {char((bytes - 10) & 255), char((bytes - 10) >> 8)};
    return out + text + "\n";
}
struct Npy {
    std::string path, descr;
    bool fortran = false;
    std::vector<int64_t> shape;
    std::vector<uint8_t> data;
};
// The header's dictionary, spelled as NumPy spells it.
struct NpyWords {
    Npy& out;
    std::string_view left;
    [[noreturn]] void stop(const char* need) const {
        fail(USAGE, "%s: %s is needed in the header, %s was given", out.path.c_str(), need,
             shown(left).c_str());
    }
    void blanks() {
        while (!left.empty() && strchr(" \t\n\r", left[0]) && left[0]) left.remove_prefix(1);
    }
    bool take(std::string_view word) {
        blanks();
        if (left.substr(0, word.size()) != word) return false;
        left.remove_prefix(word.size());
        return true;
    }
    void need(const char* word) {
        if (!take(word)) stop(word);
    }
    std::string quoted() {
        need("'");
        size_t end = left.find('\'');
        if (end == left.npos) stop("a closed quote");
        std::string word(left.substr(0, end));
        left.remove_prefix(end + 1);
        return word;
    }
    void dims() {
        need("(");
        while (!take(")")) {
            blanks();
            int64_t dim = 0;
            auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), dim);
            if (error != std::errc() || dim < 0 || dim > INT32_MAX || out.shape.size() == 8)
                stop("a shape");
            left.remove_prefix(size_t(end - left.data()));
            out.shape.push_back(dim);
            if (!take(",") && left.substr(0, 1) != ")") stop("a comma");
        }
    }
    void dictionary() {
        std::vector<std::string> keys;
        need("{");
        while (!take("}")) {
            std::string key = quoted();
            if (std::count(keys.begin(), keys.end(), key)) stop("each key once");
            keys.push_back(key);
            need(":");
            if (key == "descr") out.descr = quoted();
            else if (key == "shape") dims();
            else if (key == "fortran_order" && take("True")) out.fortran = true;
            else if (key != "fortran_order" || !take("False"))
                stop("descr, fortran_order or shape");
            if (!take(",") && left.substr(0, 1) != "}") stop("a comma");
        }
        blanks();
        if (!left.empty() || keys.size() != 3) stop("descr, fortran_order and shape");
    }
};
std::vector<uint8_t> read_file(const std::string& path) {
    FILE* file = fopen(path.c_str(), "rb");
    if (!file) fail(USAGE, "%s: cannot be opened: %s", path.c_str(), strerror(errno));
    std::vector<uint8_t> bytes;
    uint8_t part[1 << 16];
    size_t got;
    while ((got = fread(part, 1, sizeof part, file)) > 0)
        bytes.insert(bytes.end(), part, part + got);
    bool whole = !ferror(file);
    fclose(file);
    if (!whole) fail(USAGE, "%s: cannot be read: %s", path.c_str(), strerror(errno));
    return bytes;
}
Npy read_npy(const std::string& path) {
    std::vector<uint8_t> file = read_file(path);
    size_t start = file.size() > 6 && file[6] == 2 ? 12 : 10;
    if (file.size() < start || memcmp(file.data(), "\x93NUMPY", 6) || file[6] < 1 || file[6] > 2 ||
        file[7])
        fail(USAGE, "%s: a .npy file of version 1.0 or 2.0 is needed", path.c_str());
    size_t length = file[8] | size_t(file[9]) << 8;
    if (start == 12) length |= size_t(file[10]) << 16 | size_t(file[11]) << 24;
    if (length > file.size() - start)
        fail(USAGE, "%s: a header of %zu bytes is needed, the file ends before", path.c_str(),
             length);
    Npy out;
    out.path = path;
    NpyWords{out, std::string_view(reinterpret_cast<const char*>(file.data()) + start, length)}
        .dictionary();
    out.data.assign(file.begin() + ptrdiff_t(start + length), file.end());
    return out;
}
// Refuses an array of another type or shape, or one whose file is too short or long.
void check_npy(const Npy& array, const Element& element, const std::vector<int64_t>& shape) {
    size_t bytes = element.bytes;
    for (int64_t dim : shape) bytes *= size_t(dim);
    if (array.descr != element.descr || array.shape != shape)
        fail(USAGE, "%s: %s of shape %s is needed, %s of shape %s was given", array.path.c_str(),
             element.descr, npy_shape(shape).c_str(), shown(array.descr).c_str(),
             npy_shape(array.shape).c_str());
    if (array.fortran && shape.size() > 1)
        fail(USAGE, "%s: C order is needed, Fortran order was given", array.path.c_str());
    if (array.data.size() != bytes)
        fail(USAGE, "%s: %zu bytes of data are needed, %zu were given", array.path.c_str(), bytes,
             array.data.size());
}
