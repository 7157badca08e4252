// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of stored datasets: the number of samples, the fields, and the stored bytes or rows of each sample.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/notes.h"
#include "feedline/array.h"
#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/inspection.h"
#include "feedline/sample_files.h"
#include "memory/record.h"
#include "memory/row.h"
#include "storage/storage.h"

namespace feedline::format {

enum class FieldKind : std::uint8_t {
  kImage,    // stored bytes of an image file
  kInteger,  // a number
  kArray,    // an array of numbers: a row, or a record's stored .npy file
  kMask,     // stored bytes of an image whose pixels are labels
  kBytes,    // stored bytes, unchanged
  kText,     // stored bytes of text
  kJson,     // stored bytes of JSON
  // Stored bytes of a .npy file or of JSON lists, which geometric operations transform along with the sample's images.
  kBoxes,      // (N, 4)
  kKeypoints,  // (N, 2) or (N, K, 2)
  kAudio,      // stored bytes of an audio file
  kVideo,      // stored bytes of a video file
  kVolume,     // an N-D array that is read in boxes
};
// Returns the name of a kind in specs, from "image" to "volume". The name of kInteger is "value".
std::string_view name_of(FieldKind kind);
std::optional<FieldKind> field_kind_of(std::string_view name);

// Frames that the format chooses for each sample, instead of clip() or frames().
struct ChosenByFormat {
  Shape axes;                // before those of a frame: (), or (frames,)
  std::optional<Size> size;  // of all frames, if known
  double tolerance = 0;  // seconds by which a video's frame may differ from its time, exclusive; 0: images, no video
};

struct FieldDescription {
  std::string name;  // "image", "label", or the extension that the user requested
  FieldKind kind = FieldKind::kImage;
  ArraySpec array = {};        // for a RowFormat or arrays in memory; the first extent may be kAnyLength
  bool may_be_absent = false;  // with Missing::kNone: some samples lack the field
  Element pad{};               // for a RecordFormat's ragged array: pads shorter rows
  bool has_labels = false;     // kVolume: the elements are labels, which are not interpolated
  std::shared_ptr<const ChosenByFormat> frames = nullptr;  // of a video
};

struct OpenOptions {
  std::string format;  // a name in the registry, such as "tar"; if empty, detected from `source`
  // One spec per field. If empty, the format's default fields are used. For tar files, a spec is one or more extensions
  // separated by ';' ("jpg;png"); for folders, a spec is a pattern ("masks/{key}.png"). ":KIND" at the end overrides
  // the kind that the extension implies.
  std::vector<std::string> fields;
  std::string index_directory;  // where to store indexes; if empty, next to the shard, else in the cache folder
  std::shared_ptr<const storage::Storage> storage;  // nullptr: local files
  std::shared_ptr<cache::Notes> notes = {};         // receives notes about cached files; may be nullptr
  Missing missing = Missing::kError;                // treatment of samples that lack a field
  // The maximum age of a stored listing of folders without modification times. If 0, folders are listed every time.
  std::chrono::seconds listing_age{kListingAge};
  AnnotationOptions annotations = {};
  bool documents = false;  // see feedline::OpenOptions
};

// The parts of a dataset that shuffle="shards" permutes.
struct ShuffleBlocks {
  std::string_view name = "shards";  // for explain(): "row groups"
  std::vector<std::uint64_t> ends;   // cumulative number of samples up to the end of each part
};

// The cost of values in blocks that are decompressed as a whole whenever one of their values is read. Zeros if there
// are no such blocks.
struct BlockCosts {
  std::uint64_t bytes = 0;     // of all blocks, decompressed
  double value_bytes = 0;      // of a sample's values in these blocks
  double bytes_of_sample = 0;  // of the blocks that hold these values, decompressed
  std::uint64_t memory = 0;    // room for decompressed blocks
  std::uint64_t disk = 0;      // the same in the cache folder
};

// The blocks that were decompressed so far.
struct BlockCounts {
  std::uint64_t blocks = 0, bytes = 0;  // bytes: decompressed
  std::uint64_t delivered = 0;          // bytes of values that were read
};

// The common interface of all formats. Immutable once opened, so that all methods are thread-safe. Errors have a
// location (shard, key, record, offset, stage).
class Format {
 public:
  virtual ~Format() = default;

  virtual std::string_view name() const = 0;  // "folder", "tar"
  virtual std::uint64_t size() const = 0;     // number of samples
  virtual const std::vector<FieldDescription>& fields() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;  // names by label; empty if unknown
  // The number of batch rows that a thread fills at a time; it is large enough to make the overhead small. A
  // RecordFormat supports gather() if the number exceeds 1.
  virtual std::uint64_t grain() const { return 1; }
  // The columns of the source that no field reads, in the source's order, if they are known after opening.
  virtual std::vector<UnopenedColumn> unopened() const { return {}; }
  virtual std::vector<FieldRemark> remarks() const { return {}; }
  // Lines for explain() about how the source was opened, or an empty string.
  virtual std::string summary() const { return {}; }
  // The number of samples up to the end of each shard. Empty if the format has no shards, or if reading within a shard
  // is not faster than random access.
  virtual std::vector<std::uint64_t> shard_ends() const { return {}; }
  // The shards, or their parts if a part is the smallest unit that is read fast. Each shard consists of whole parts.
  virtual ShuffleBlocks shuffle_blocks() const { return {.ends = shard_ends()}; }
  virtual BlockCosts block_costs() const { return {}; }
  virtual BlockCounts block_counts() const { return {}; }
  // The shard, key and byte offset of a sample, for messages and logs. where_field() locates one field, which may be
  // stored separately.
  virtual Where where(std::uint64_t index) const = 0;
  virtual Where where_field(std::uint64_t index, std::size_t /*field*/) const { return where(index); }
  // Returns a row of an array without copying it: any row with kView, otherwise only large rows in mapped files, whose
  // pages are copied on write. If the result has no memory, the caller must copy the row. Fails with kStorage if the
  // file has been truncated. Requires: index < size().
  virtual Result<memory::OwnRow> own_row(std::uint64_t /*index*/, std::size_t /*field*/, memory::RowUse /*use*/) const {
    return memory::OwnRow{};
  }
  // The fingerprint changes if the samples, their order or their fields change, but not if only the contents of samples
  // change.
  virtual std::uint64_t fingerprint() const = 0;
  // Inspects the source in the same way as the function inspect() below.
  virtual Result<Inspection> inspect() const = 0;
};

// A stored object with the samples of one shard.
struct StoredShard {
  std::string path;  // empty if the object is not in the format's storage
  storage::Version version;
};

// An object that was opened with its stored index, without checking that the object is unchanged. Reading a changed
// object always fails. However, a rank with a stale index may never read the object, and its sample order differs from
// the order on other ranks. Requires: the format outlives this object.
class UncheckedObject {
 public:
  virtual ~UncheckedObject() = default;
  // Returns a piece that covers one byte of the object. Reading this piece fails if the version has changed. Does not
  // block.
  virtual Result<storage::Piece> piece() const = 0;
  // Handles the result of reading piece(). Adds the location to an error. If the object has changed or no longer
  // exists, deletes its stored index, so that it is rebuilt when the source is next opened.
  virtual Result<void> note(Result<void> came) const = 0;
};

// A sample, and the row of a batch that it fills.
struct SampleRow {
  std::uint64_t sample = 0, row = 0;
};

// A format whose samples consist of stored bytes or pixels, which the pipeline decodes.
class RecordFormat : public Format {
 public:
  // Writes the numbers of many samples to rows, where first_rows[i] is row 0 of field i. The bytes are those that
  // read() and the paths of dense fields deliver. Returns the number of bytes read. Fails if one of the samples is bad
  // or has a different shape; the contents of the rows are then unspecified, and the error may lack its location.
  // Requires: grain() > 1, `samples` is not empty, and fields are int64 if they are kInteger, otherwise kArray.
  virtual Result<std::uint64_t> gather(std::span<const SampleRow> samples, std::span<const ArrayView> first_rows) const;
  // Reads sample `index` into `record`, whose buffers are reused. Requires: index < size().
  virtual Result<void> read(std::uint64_t index, memory::Record& record) const = 0;
  // Sets a field of a record if its values are in memory, without reading from storage. Otherwise returns false. The
  // bytes are valid as long as both the format and `room` exist. Requires: index < size().
  virtual bool find_value(std::uint64_t /*index*/, std::size_t /*field*/, memory::Record::Field& /*value*/,
                          std::string& /*room*/) const {
    return false;
  }
  // Reads one field into record.fields.front(), without the sample's other fields. Returns false if the format reads
  // only whole samples, or if read() needs fewer requests. The value is the same as from read(), except that an
  // ImageFrame is not set. Requires: index < size().
  virtual Result<bool> read_field(std::uint64_t /*index*/, std::size_t /*field*/, memory::Record& /*record*/) const {
    return false;
  }
  // Returns where the stored bytes of an image are, so that parts of them can be read: a range, or, without a reader, a
  // whole object. Returns nullopt if the format does not support this. Requires: index < size().
  virtual Result<std::optional<storage::Piece>> locate_image(std::uint64_t /*index*/, std::size_t /*field*/) const {
    return std::nullopt;
  }
  // Returns all files of a sample, including files for fields that were not requested. Fails with kConfig if the format
  // does not store files.
  virtual Result<SampleFiles> files(std::uint64_t index) const;
  // Returns the sizes of files(). Reads the whole sample, unless a derived class overrides this function.
  virtual Result<SampleFileSizes> file_sizes(std::uint64_t index) const;
  // These functions read a sample in two steps, for prefetching. find_pieces() locates the bytes of the sample in at
  // most most_pieces() objects. If find_pieces() returns no pieces, only read() can read the sample. accept() then
  // fills the record like read(), with the first piece in record.storage and the others in record.more. Pieces with
  // is_shared may be elsewhere in memory, and are valid only during the call. storage() is the storage from which
  // pieces are fetched, or nullptr if there are no pieces. Requires: index < size(), `pieces` is empty, accept()
  // receives all bytes of the pieces, and their offsets are in record.piece_offsets.
  virtual std::size_t most_pieces() const { return 1; }
  virtual Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const;
  virtual Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                              memory::Record& record) const;
  virtual std::shared_ptr<const storage::Storage> storage() const { return nullptr; }
  // Returns the storage backends from which samples are read. A mixture of datasets may have several backends.
  virtual std::vector<std::shared_ptr<const storage::Storage>> storages() const;
  // Returns one object for each element of shard_ends(), for prefetching whole shards. Empty if the format does not
  // support this.
  virtual std::vector<StoredShard> stored_shards() const { return {}; }
  // Returns whether the samples are in memory or mapped. Such samples may change, and caching them would only store a
  // second copy.
  virtual bool is_in_memory() const { return false; }
  // The memory that decompressed blocks of the source may use, shared by all loaders; 0 if there are no blocks.
  virtual std::uint64_t block_bytes() const { return 0; }
  // Sets a lower limit for this memory. The limit of the loader whose epoch began last applies.
  virtual void limit_blocks(std::uint64_t /*bytes*/) const {}
  // Checks whether open objects have changed since they were indexed. Called between epochs. Afterwards, reading a
  // sample from a changed object fails with kStorage.
  virtual void notice_changes() const {}
  // Returns all objects that were opened without checking for changes and have not been checked since.
  virtual std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const { return {}; }
};

// A format whose samples are rows of arrays. The format itself writes the rows, many at a time. All fields are kArray.
class RowFormat : public Format {
 public:
  // Writes `samples` to consecutive rows, where first_rows[i] is the first row of field i. Fills the end of shorter
  // samples with the field's padding value. Skips fields whose first row has no data. Returns the number of bytes read.
  // On an error, the contents of the rows are unspecified. Requires: no sample is longer than its row.
  virtual Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                                     std::span<const ArrayView> first_rows) const = 0;
  // length() is the first extent of a sample in a field, and longest() is the first extent of the longest sample. The
  // two values differ only if the field's extent is kAnyLength. Neither function reads from storage.
  virtual std::uint64_t length(std::uint64_t index, std::size_t field) const;
  virtual std::uint64_t longest(std::size_t field) const;
  // Like length(), for many samples. Requires: both spans have the same length.
  virtual void lengths(std::span<const std::uint64_t> samples, std::size_t field,
                       std::span<std::uint64_t> lengths) const;
  // Converts the elements [begin, begin + out.size()) of a sample in a field to int64. Returns the number of bytes
  // read. The default implementation reads the whole sample. Requires: the field is one-dimensional, its dtype is an
  // integer that int64 can represent (see to_int64_of()), and the elements exist.
  virtual Result<std::uint64_t> read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                              std::span<std::int64_t> out) const;
};

// A function that converts `count` integers, which may be unaligned, to int64.
using ToInt64 = void (*)(const std::byte* integers, std::uint64_t count, std::int64_t* out);
// Fails with kConfig unless the dtype is bool, or an integer of at most 64 bits, except uint64.
Result<ToInt64> to_int64_of(DType dtype);

// Returns a list of the first few columns, such as "caption (text), meta (map: of a type that this version does not
// read)".
std::string names_of(const std::vector<UnopenedColumn>& columns);

// Returns whether a format leaves a field's file unread, because the record's owner reads only parts of it. Each part
// of a remote file would take a request, so remote audio files are read whole.
bool leaves_unread(const memory::Record& record, FieldKind kind, const storage::Storage& storage);

// Returns `error` with this location and with the error's own stage and, if it has one, offset.
std::unexpected<Error> failed_at(Where location, Error error);

// The functions below return the format as one of the two kinds, or nullptr if the format is of the other kind.
std::shared_ptr<const RecordFormat> records_of(std::shared_ptr<const Format> format);
std::shared_ptr<const RowFormat> rows_of(std::shared_ptr<const Format> format);

// Returns whether `format` is a row format in which a field has samples of different lengths, which are known without
// reading.
bool is_ragged(const Format& format);

// kConfig: the extension of an audio field's first file shows that libsndfile is required, and it is not installed.
// Reads nothing.
Result<void> check_audio_library(const Format& format);

// Opens a dataset. Fails with kConfig if the format, a field or the source is unknown, with kStorage if the source
// cannot be listed or opened, and with kData if a shard is damaged.
Result<std::shared_ptr<const Format>> open(const std::string& source, const OpenOptions& options);

// Reports damage, samples that a reader would drop or merge, sizes and extensions. Also inspects sources that open()
// rejects, and continues after errors if possible. Does not read pixels or indexes. Fails only if there is nothing to
// inspect, because the source, the format or a field is unknown.
Result<Inspection> inspect(const std::string& source, const OpenOptions& options);

}  // namespace feedline::format
