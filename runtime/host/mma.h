// What a warp's tensor-core operations and a thread's asynchronous copies do: twins of codegen/lib/mma.cuh's PTX.
#pragma once

namespace monocu_host {

// One lane's part of COUNT products: fragments as mma.m16n8k32 has them, lane l in row l / 4, column l % 4 words on.
struct MmaLane {
    int (*d)[4];
    const unsigned (*a)[4];
    const unsigned (*b)[2];
};

template <int COUNT> inline void mma_lanes(MmaLane* const* lanes) {
    for (int c = 0; c < COUNT; c++) {
        unsigned a[16][8], b[8][8];
        for (int l = 0; l < 32; l++) {
            for (int i = 0; i < 4; i++) a[l / 4 + i % 2 * 8][l % 4 + i / 2 * 4] = lanes[l]->a[c][i];
            for (int i = 0; i < 2; i++) b[l / 4][l % 4 + i * 4] = lanes[l]->b[c][i];
        }
        for (int l = 0; l < 32; l++) {
            for (int i = 0; i < 4; i++) {
                const int4* x = reinterpret_cast<const int4*>(a[l / 4 + i / 2 * 8]);
                const int4* w = reinterpret_cast<const int4*>(b[l % 4 * 2 + i % 2]);
                int& d = lanes[l]->d[c][i];
                d = dot16(x[1], w[1], dot16(x[0], w[0], d));
            }
        }
    }
}

// One lane's part of COUNT loads by ldmatrix.x4: it names row l % 8 of matrix l / 8 and gets word l % 4 of row l / 4 of each.
struct MatrixLane {
    unsigned (*to)[4];
    const void* const* row;
};

template <int COUNT> inline void matrix_lanes(MatrixLane* const* lanes) {
    for (int c = 0; c < COUNT; c++)
        for (int l = 0; l < 32; l++)
            for (int m = 0; m < 4; m++) {
                const void* row = lanes[m * 8 + l / 4]->row[c];
                memcpy(&lanes[l]->to[c][m], static_cast<const char*>(row) + l % 4 * 4, 4);
            }
}

// A thread's asynchronous copies. They land at the wait that asks for them, no sooner, so that a missing one shows.
class AsyncCopies {
    static constexpr int MOST = 160;
    struct Copy {
        void* to;
        const void* from;  // null: zeros
        int bytes, group;
    };
    Copy open[MOST];
    int count = 0, groups = 0;

  public:
    void add(void* to, const void* from, int bytes) {
        if (reinterpret_cast<uintptr_t>(to) % bytes || reinterpret_cast<uintptr_t>(from) % bytes)
            fail_block("an asynchronous copy of %d bytes is not aligned", bytes);
        if (count == MOST) fail_block("a thread has more than %d asynchronous copies open", MOST);
        open[count++] = {to, from, bytes, groups};
    }
    void commit() { groups++; }
    // Lands every committed group but the last `pending`.
    void wait(int pending) {
        int left = 0;
        for (int i = 0; i < count; i++) {
            const Copy c = open[i];
            if (c.group >= groups - pending)
                open[left++] = c;
            else if (c.from)
                memcpy(c.to, c.from, static_cast<size_t>(c.bytes));
            else
                memset(c.to, 0, static_cast<size_t>(c.bytes));
        }
        count = left;
    }
};

}  // namespace monocu_host
