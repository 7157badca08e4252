// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists a folder's contents in a file in that folder, for backends that cannot list folders. The command `feedline
// index` writes this file.
//
//     feedline-listing 1 2                        format number, number of lines that follow
//     110331 n01440764/n01440764_10026.JPEG       bytes, path below the folder, percent-encoded
//     0 empty/                                    an empty folder

#include <string_view>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::storage {

inline constexpr std::string_view kListingFile = "feedline-listing.txt";

// kData: the text is not a listing, or is truncated.
Result<Tree> parse_listing_file(std::string_view text);

}  // namespace feedline::storage
