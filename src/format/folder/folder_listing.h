// SPDX-License-Identifier: Apache-2.0
#pragma once

// The samples of a folder of class folders, in exactly the order of torchvision's ImageFolder.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/finding.h"
#include "format/folder/listed_folders.h"
#include "storage/storage.h"

namespace feedline::format {

// What a listing says of an object: its size, and the tag of its version, or 0 (storage/reader.h).
struct ListedObject {
  std::uint64_t bytes;
  std::uint64_t tag;
};

// A few dozen bytes per sample: millions of files are usual.
struct FolderListing {
  std::vector<std::string> classes;                 // sorted; the label is the place in here
  std::vector<std::uint64_t> class_ends;            // samples of the classes up to and with this one
  std::string paths;                                // of all samples, relative to the root, one after the other
  std::vector<std::uint64_t> path_ends;             // where each ends in `paths`
  std::vector<ListedObject> objects;                // of each sample; empty: the listing says nothing of them
  std::vector<ListedFolder> folders;                // all that were listed
  std::map<std::string, std::uint64_t> extensions;  // files below class folders, lower case, of no sample too
  // Files next to the class folders, which ImageFolder ignores, by their extensions as written (".JPG").
  std::map<std::string, std::uint64_t> stray_extensions;
  std::vector<std::string> stray_tars;
  // A file that describes images, in the folder or in one of its first class folders; of flat names alone.
  std::string metadata;
  Findings findings;  // class_without_images, unknown_extension, stray_file

  std::uint64_t samples() const { return path_ends.size(); }
  std::string_view path(std::uint64_t sample) const;
};

// Reads folders only, no file; several classes at a time where there are CPUs for it, or a network. kStorage: one
// cannot be listed. kConfig: nested absurdly deep, as by a link to a parent folder.
Result<FolderListing> list_folder(const storage::Storage& storage, const std::string& root);

// Names of files that describe the images next to them.
inline constexpr std::array<std::string_view, 3> kMetadataNames{"metadata.csv", "metadata.jsonl", "metadata.parquet"};
// A folder of classes with metadata has it in one of so many first ones: of thousands not all are looked into.
inline constexpr std::ptrdiff_t kFirstClasses = 8;

// Does the name end in one of the extensions that ImageFolder takes for images?
bool is_image_name(std::string_view name);
// Likewise, or in the extension of any other image that Feedline decodes, if need be by Pillow.
bool is_any_image_name(std::string_view name);
// One of ImageFolder's extensions that Feedline decodes without Pillow.
bool is_decodable_name(std::string_view name);

}  // namespace feedline::format
