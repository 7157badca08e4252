// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// included after jpeglib.h, whose configuration determines the error codes
#include <jerror.h>

// All blocks of one component; libjpeg does not access its members. libjpeg's own version uses a temporary file if
// memory runs out, whereas this version reports an error.
struct jvirt_barray_control {
  jvirt_barray_control* older;
  JBLOCKARRAY rows;  // nullptr until the arrays are allocated
  JDIMENSION blocks_per_row;
  JDIMENSION row_count;
  JDIMENSION first_unseen;  // rows from here on have not been zeroed yet
};

namespace feedline::decode {
namespace {

// libjpeg's SIMD code writes rows of samples in whole vectors: two vectors of 32 bytes at a time.
constexpr std::size_t kRowAlignment = 64;
static_assert(memory::Arena::kAlignment % kRowAlignment == 0);

std::size_t aligned(std::size_t bytes) { return (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment; }

}  // namespace

// Each callback may exit by longjmp, so none has objects that need a destructor.
struct JpegMemory::Callbacks {
  static JpegMemory& memory_of(j_common_ptr jpeg) { return *static_cast<JpegMemory*>(jpeg->client_data); }

  static void* allocate(j_common_ptr jpeg, std::size_t bytes) {
    JpegMemory& memory = memory_of(jpeg);
    const bool is_allowed =
        memory.arena_.held_bytes() + bytes <= static_cast<std::size_t>(jpeg->mem->max_memory_to_use);
    void* const given = is_allowed ? memory.arena_.allocate(bytes) : nullptr;
    if (given == nullptr) ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
    return given;
  }

  // Allocates contiguous rows, and an array with the start of each.
  template <typename T>
  static T** rows_of(j_common_ptr jpeg, std::size_t row_bytes, JDIMENSION count) {
    auto** const rows = static_cast<T**>(allocate(jpeg, count * sizeof(T*)));
    auto* const first = static_cast<std::byte*>(allocate(jpeg, row_bytes * count));
    for (JDIMENSION y = 0; y < count; ++y) rows[y] = reinterpret_cast<T*>(first + row_bytes * y);
    return rows;
  }

  // This includes the permanent pool, in which an existing decompressor allocates only tables.
  static void* alloc(j_common_ptr jpeg, int /*pool*/, std::size_t bytes) { return allocate(jpeg, bytes); }

  static JSAMPARRAY alloc_samples(j_common_ptr jpeg, int /*pool*/, JDIMENSION samples, JDIMENSION rows) {
    return rows_of<JSAMPLE>(jpeg, aligned(samples * sizeof(JSAMPLE)), rows);
  }

  static JBLOCKARRAY alloc_blocks(j_common_ptr jpeg, int /*pool*/, JDIMENSION blocks, JDIMENSION rows) {
    return rows_of<JBLOCK>(jpeg, blocks * sizeof(JBLOCK), rows);
  }

  // Zeroes all arrays; decompressors never request arrays without zeroing.
  static jvirt_barray_ptr request_blocks(j_common_ptr jpeg, int /*pool*/, boolean /*zeroed*/, JDIMENSION blocks,
                                         JDIMENSION rows, JDIMENSION /*most_accessed*/) {
    JpegMemory& memory = memory_of(jpeg);
    auto* const array = static_cast<jvirt_barray_ptr>(allocate(jpeg, sizeof(jvirt_barray_control)));
    *array = {memory.newest_, nullptr, blocks, rows, 0};
    return memory.newest_ = array;
  }

  static void make_requested(j_common_ptr jpeg) {
    for (jvirt_barray_ptr array = memory_of(jpeg).newest_; array != nullptr; array = array->older) {
      if (array->rows == nullptr)
        array->rows = rows_of<JBLOCK>(jpeg, array->blocks_per_row * sizeof(JBLOCK), array->row_count);
    }
    memory_of(jpeg).own_.realize_virt_arrays(jpeg);
  }

  static JBLOCKARRAY access_blocks(j_common_ptr jpeg, jvirt_barray_ptr array, JDIMENSION first, JDIMENSION count,
                                   boolean /*writable*/) {
    if (array->rows == nullptr || first > array->row_count || count > array->row_count - first)
      ERREXIT(jpeg, JERR_BAD_VIRTUAL_ACCESS);
    // zeroed on first access: in a truncated image most rows are never accessed
    for (; array->first_unseen < first + count; ++array->first_unseen)
      std::memset(array->rows[array->first_unseen], 0, array->blocks_per_row * sizeof(JBLOCK));
    return array->rows + first;
  }

  static void free_pool(j_common_ptr jpeg, int pool) {
    JpegMemory& memory = memory_of(jpeg);
    memory.own_.free_pool(jpeg, pool);
    if (pool == JPOOL_IMAGE) memory.take_back(*reinterpret_cast<j_decompress_ptr>(jpeg));
  }
};

void JpegMemory::take_back(jpeg_decompress_struct& jpeg) {
  std::ranges::fill(jpeg.quant_tbl_ptrs, nullptr);
  std::ranges::fill(jpeg.dc_huff_tbl_ptrs, nullptr);
  std::ranges::fill(jpeg.ac_huff_tbl_ptrs, nullptr);
  newest_ = nullptr;
  arena_.reset();
}

void JpegMemory::serve(jpeg_decompress_struct& jpeg) {
  jpeg_memory_mgr& manager = *jpeg.mem;
  own_ = manager;
  jpeg.client_data = this;
  manager.alloc_small = Callbacks::alloc;
  manager.alloc_large = Callbacks::alloc;
  manager.alloc_sarray = Callbacks::alloc_samples;
  manager.alloc_barray = Callbacks::alloc_blocks;
  manager.request_virt_barray = Callbacks::request_blocks;
  manager.realize_virt_arrays = Callbacks::make_requested;
  manager.access_virt_barray = Callbacks::access_blocks;
  manager.free_pool = Callbacks::free_pool;
}

}  // namespace feedline::decode
