// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a folder holds, as a file in it: for storages that have no listings. `feedline index` writes it.
//
//     feedline-listing 1 2                        format number, lines that follow
//     110331 n01440764/n01440764_10026.JPEG       bytes, path below the folder, percent-encoded
//     0 empty/                                    a folder that holds nothing

#include <string_view>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::storage {

inline constexpr std::string_view kListingFile = "feedline-listing.txt";

// kData: it is none, or one that is cut.
Result<Tree> parse_listing_file(std::string_view text);

}  // namespace feedline::storage
