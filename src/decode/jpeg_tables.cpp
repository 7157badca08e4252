// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg_tables.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace feedline::decode {
namespace {

bool is_blank(const JHUFF_TBL* table) {
  return table && std::ranges::all_of(table->bits, [](UINT8 v) { return v == 0; });
}

}  // namespace

bool is_blank(const JQUANT_TBL* table) {
  return table && std::ranges::all_of(table->quantval, [](UINT16 v) { return v == 0; });
}

void blank_tables(jpeg_decompress_struct& jpeg) {
  for (JQUANT_TBL* table : jpeg.quant_tbl_ptrs)
    if (table) std::memset(table->quantval, 0, sizeof table->quantval);
  for (int i = 0; i < NUM_HUFF_TBLS; ++i)
    for (JHUFF_TBL* table : {jpeg.dc_huff_tbl_ptrs[i], jpeg.ac_huff_tbl_ptrs[i]})
      if (table) std::memset(table->bits, 0, sizeof table->bits);
}

bool scan_lacks_tables(const jpeg_decompress_struct& jpeg) {
  const auto lacks = [](const auto& tables, int number) {
    return number >= 0 && number < static_cast<int>(std::size(tables)) && is_blank(tables[number]);
  };
  for (int i = 0; i < jpeg.comps_in_scan; ++i) {
    const jpeg_component_info& component = *jpeg.cur_comp_info[i];
    if (lacks(jpeg.quant_tbl_ptrs, component.quant_tbl_no) || lacks(jpeg.dc_huff_tbl_ptrs, component.dc_tbl_no) ||
        lacks(jpeg.ac_huff_tbl_ptrs, component.ac_tbl_no))
      return true;
  }
  return false;
}

}  // namespace feedline::decode
