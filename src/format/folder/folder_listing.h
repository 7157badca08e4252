// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists the samples of a folder of class folders, in exactly the order of torchvision's ImageFolder.

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

// The data that a listing has about an object: its size, and the tag of its version or 0 (storage/reader.h).
struct ListedObject {
  std::uint64_t bytes;
  std::uint64_t tag;
};

// Uses a few dozen bytes per sample, because datasets with millions of files are common.
struct FolderListing {
  std::vector<std::string> classes;                 // sorted; the index is the label
  std::vector<std::uint64_t> class_ends;            // number of samples in each class and those before it
  std::string paths;                                // paths of all samples relative to the root, concatenated
  std::vector<std::uint64_t> path_ends;             // end of each path in `paths`
  std::vector<ListedObject> objects;                // one per sample; empty if the listing has no object data
  std::vector<ListedFolder> folders;                // all folders that were listed
  std::map<std::string, std::uint64_t> extensions;  // files below class folders by lower-case extension, including
                                                    // files that are not samples
  // Files next to the class folders, which ImageFolder ignores, by their extensions as written (".JPG").
  std::map<std::string, std::uint64_t> stray_extensions;
  std::vector<std::string> stray_tars;
  // A file that describes the images, in the root or in one of the first class folders. Only set for flat storage.
  std::string metadata;
  Findings findings;  // class_without_images, unknown_extension, stray_file

  std::uint64_t samples() const { return path_ends.size(); }
  std::string_view path(std::uint64_t sample) const;
};

// Lists folders without opening files, several classes in parallel if there are enough CPUs or the storage is remote.
// kStorage: a folder cannot be listed. kConfig: folders are nested too deep, for example by a link to a parent folder.
Result<FolderListing> list_folder(const storage::Storage& storage, const std::string& root);

// Names of files that describe the images next to them.
inline constexpr std::array<std::string_view, 3> kMetadataNames{"metadata.csv", "metadata.jsonl", "metadata.parquet"};
// Number of class folders that are searched for metadata; datasets may have thousands of classes.
inline constexpr std::ptrdiff_t kFirstClasses = 8;

}  // namespace feedline::format
