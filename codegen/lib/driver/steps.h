// The scheduler: which rows of which sequences the next step takes. No device in here.
struct Sequence {
    std::vector<int> tokens;    // the prompt, then what was generated
    size_t prompt;              // tokens of it
    size_t rows = 0;            // tokens taken in: the next row's position
    int slot = -1;              // where its cache is while it runs
    const char* end = nullptr;  // why it ended: "length" or "stop"
    bool running() const { return slot >= 0 && !end; }
};
// Who the rows of a step are.
struct Taken {
    std::vector<RowOf> rows, wanted;
    size_t prompt_rows = 0;
};
// Gives free slots to sequences that wait. False where nothing runs and nothing waits.
bool admit(std::vector<Sequence>& sequences, int slots) {
    std::vector<bool> used(size_t(slots), false);
    for (const Sequence& s : sequences)
        if (s.running()) used[size_t(s.slot)] = true;
    bool any = false;
    for (Sequence& s : sequences) {
        auto free = std::find(used.begin(), used.end(), false);
        if (!s.end && s.slot < 0 && free != used.end()) {
            *free = true;
            s.slot = int(free - used.begin());
        }
        any = any || s.running();
    }
    return any;
}
// Adds up to `most` rows of a sequence. A wanted row is its last one, or every one.
void take_rows(Sequence& s, int index, size_t most, bool all, Step& step, Taken& taken) {
    size_t count = std::min({s.tokens.size() - s.rows, most, size_t(MAX_ROWS - step.rows)});
    size_t room = size_t(MAX_WANTED - step.wanted);
    if (all) count = std::min(count, room);
    if (!all && room == 0 && s.rows + count == s.tokens.size() && count) count--;
    for (size_t i = 0; i < count; i++, s.rows++) {
        if (s.rows < s.prompt) taken.prompt_rows++;
        taken.rows.push_back({index, int(s.rows)});
        if (all || s.rows + 1 == s.tokens.size()) {
            taken.wanted.push_back({index, int(s.rows)});
            step.want[step.wanted++] = step.rows;
        }
        step.token[step.rows] = s.tokens[s.rows];
        step.seq[step.rows] = s.slot;
        step.pos[step.rows++] = int(s.rows);
    }
}
// The next step: a row of every sequence that generates, then prompts, `chunk` rows of each.
Taken plan_step(std::vector<Sequence>& sequences, int chunk, bool all, Step& step) {
    Taken taken;
    step.rows = step.wanted = 0;
    for (bool prompts : {false, true})
        for (size_t i = 0; i < sequences.size(); i++) {
            Sequence& s = sequences[i];
            if (s.running() && s.rows < s.tokens.size() && (s.rows < s.prompt) == prompts)
                take_rows(s, int(i), size_t(chunk), all, step, taken);
        }
    return taken;
}
// The device's table behind a step: where all rows were wanted, `advance` made each its successor.
bool advance_table(Step& step, const int* next) {
    for (int i = 0; i < step.rows; i++) {
        if (step.wanted != step.rows || step.want[i] != i) return false;
        step.token[i] = next[i];
        step.pos[i]++;
    }
    return true;
}
bool same_table(const Step& a, const Step& b) {
    size_t rows = size_t(a.rows) * sizeof(int), wanted = size_t(a.wanted) * sizeof(int);
    return a.rows == b.rows && a.wanted == b.wanted && !memcmp(a.token, b.token, rows) &&
           !memcmp(a.seq, b.seq, rows) && !memcmp(a.pos, b.pos, rows) &&
           !memcmp(a.want, b.want, wanted);
}
// Takes the token chosen behind a sequence's last row. True where it is to be printed.
bool take_token(Sequence& s, int token, int n, const std::vector<int>& stop) {
    size_t made = s.tokens.size() - s.prompt;
    if (n == 0) {
        s.end = "length";
        return false;
    }
    if (std::count(stop.begin(), stop.end(), token)) {
        s.end = "stop";
        return false;
    }
    s.tokens.push_back(token);
    if (made + 1 == size_t(n)) s.end = "length";
    return true;
}
