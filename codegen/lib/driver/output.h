// What comes out: tokens or text on standard output, logits in a file.

// One sequence streams; of several, each prints its line when it and those before it have ended.
struct Output {
    Vocabulary vocabulary;
    bool text;  // printed in place of ids
    std::vector<TextStream> streams;
    std::vector<std::string> lines;  // not printed yet
    std::vector<bool> begun, ended;
    size_t printed = 0;  // sequences whose line is out

    Output(size_t sequences, const Vocabulary& words, bool as_text)
        : vocabulary(words),
          text(as_text),
          streams(sequences),
          lines(sequences),
          begun(sequences, false),
          ended(sequences, false) {}

    void add(size_t sequence, const std::string& more) {
        lines[sequence] += more;
        if (lines.size() > 1 || more.empty()) return;
        say(more);
        lines[sequence].clear();
    }
    void token(size_t sequence, int id) {
        if (text) add(sequence, streams[sequence].push(vocabulary_text(vocabulary, uint64_t(id))));
        else add(sequence, (begun[sequence] ? "," : "") + std::to_string(id));
        begun[sequence] = true;
    }
    void end(size_t sequence) {
        add(sequence, streams[sequence].finish());
        ended[sequence] = true;
        for (; printed < lines.size() && ended[printed]; printed++) say(lines[printed] + "\n");
    }
    // What there is of every sequence.
    void end_all() {
        for (size_t i = 0; i < lines.size(); i++)
            if (!ended[i]) end(i);
    }
};

// Logits as rows of one array, by sequence, then position. Places are kept for all rows that there may
// be; at the end rows move up over those that an early stop left empty.
struct LogitsFile {
    NewFile file;
    std::vector<size_t> first, count;  // of each sequence: its first row's place, its rows so far
    static constexpr size_t HEADER = 128, ROW = size_t(VOCAB) * sizeof(float);

    void open(const std::string& path, const std::vector<Sequence>& sequences, int n, bool all) {
        file = open_file(path);
        size_t place = 0;
        for (const Sequence& s : sequences) {
            first.push_back(place);
            count.push_back(0);
            place += (all ? s.prompt - 1 : 0) + size_t(std::max(n, 1));
        }
    }
    void seek(size_t place) {
        if (fseeko(file.file, off_t(HEADER + place * ROW), SEEK_SET))
            fail(DEVICE, "%s: cannot be written: %s", file.path.c_str(), strerror(errno));
    }
    void add(const std::vector<RowOf>& wanted, const float* rows) {
        for (size_t i = 0; i < wanted.size(); i++) {
            size_t sequence = size_t(wanted[i].sequence);
            seek(first[sequence] + count[sequence]++);
            write_file(file, rows + i * VOCAB, ROW);
        }
    }
    void close() {
        std::vector<char> row(ROW);
        size_t place = 0;
        for (size_t s = 0; s < first.size(); s++)
            for (size_t i = 0; i < count[s]; i++, place++) {
                if (place == first[s] + i) continue;
                seek(first[s] + i);
                if (fread(row.data(), 1, ROW, file.file) != ROW)
                    fail(DEVICE, "%s: cannot be read", file.path.c_str());
                seek(place);
                write_file(file, row.data(), ROW);
            }
        std::string header = npy_header("<f4", {int64_t(place), VOCAB}, HEADER);
        bool cut = fflush(file.file) == 0 &&
                   ftruncate(fileno(file.file), off_t(HEADER + place * ROW)) == 0 &&
                   fseeko(file.file, 0, SEEK_SET) == 0;
        if (!cut) fail(DEVICE, "%s: cannot be written: %s", file.path.c_str(), strerror(errno));
        write_file(file, header.data(), header.size());
        close_file(file);
    }
};
