// SPDX-License-Identifier: Apache-2.0
#pragma once

// A dataset and the operations on its images. Immutable: every operation returns a new Dataset, cheap to copy.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "feedline/inspection.h"
#include "feedline/loader.h"
#include "feedline/node_cache.h"
#include "feedline/operation.h"
#include "feedline/sample_files.h"
#include "feedline/sample_function.h"

namespace feedline {

// What becomes of samples that lack a field.
enum class Missing : std::uint8_t {
  kError,  // reading one is an error, which on_error is about
  kSkip,   // they are left out when the source is opened
  kNone,   // the field is absent there: a row of a list that says so
};

inline constexpr std::chrono::hours kListingAge{1};

// Against what whole objects are compared, where they are read as a whole or copied into the cache of OpenOptions.
enum class Verify : std::uint8_t {
  kNone,
  kManifest,  // OpenOptions::listed_shards
  kHeaders,   // the checksums that their server says: S3 and Google Cloud Storage do
};

// What feedline-pack.json says of a shard.
struct ListedShard {
  std::string name;  // as in StoredSource::names()
  std::uint64_t bytes = 0;
  std::string sha256;  // hexadecimal digits
};

struct OpenOptions {
  // "folder", "tar", "tfrecord", "parquet" and so on (docs/formats.md); empty: by what the source is.
  std::string format;
  // One spec per field. Empty: image and label.
  // tar: an extension, or alternatives separated by ';' ("jpg;png", "seg.png", "cls"). The field is called like the
  // first of them.
  // tfrecord: a feature, or alternatives ("image/encoded", "label=image/class/label", "caption;text"). The field is
  // called like the first of them, or as "NAME=" before it says.
  // folder: where its files are below it, with {key} for the name of the sample, which may have slashes
  // ("images/{key}.jpg", "masks/{key}.png"). The field is called like the folder before {key}, or as "NAME=" before it
  // says.
  // What a field is follows from its extension: jpg, jpeg, png and webp are images, and masks (labels) where the
  // field's name begins with "mask" or "seg"; cls, cls2, index, inx and id are integers; npy is an array, json and jsn
  // are JSON, txt, text, caption and transcript are text, and all else is bytes. ":image", ":mask", ":value", ":array",
  // ":bytes",
  // ":text" or ":json" behind the spec says it otherwise, and ":boxes" and ":keypoints" that an array, or lists in
  // JSON, is what the geometry of images moves along.
  std::vector<std::string> fields;
  std::string index_directory;  // where indexes are kept; empty: beside the shard, else the user's cache folder
  Missing missing = Missing::kError;
  std::string cache_directory;  // where copies of whole objects are kept on this machine: node_cache.h; empty: nowhere
  CacheLimit cache_limit;
  // A folder behind a network has no time that tells whether it has changed: a listing that is kept of it is trusted
  // for so long, unless a sample turns out to be gone or another one before. 0: it is listed anew. Of a shard behind a
  // network whose index is kept nobody is asked when it is opened, but while the first epoch runs; 0: at once.
  std::chrono::seconds listing_age{kListingAge};
  bool allow_commands = false;  // may the source be "pipe:" and a command, whose standard output is a tar?
  Verify verify = Verify::kNone;
  std::vector<ListedShard> listed_shards = {};
  // A second request for one that takes longer to be answered than 99 of 100 do; see docs/remote.md.
  bool hedge = false;
};

// One transformed sample, or one stored one, with the memory it lives in.
struct Sample {
  struct Field {
    std::string name;
    ArraySpec array;  // with the extents that this sample has
    std::vector<std::byte> data;
    BatchForm form = BatchForm::kDense;
    Content content = Content::kArray;
    bool absent = false;  // the sample does not have the field; the array is empty
    // Of a large row of a mapped file: the array, in place of `data`, in pages that may be written and change no file.
    std::shared_ptr<std::byte> pages = nullptr;
    std::byte* bytes() { return pages ? pages.get() : data.data(); }  // of the array
  };
  std::vector<Field> fields;
};

// What a field of a sample is to those who use it.
struct FieldRole {
  std::string name;
  std::string kind;                         // "image", "mask", "boxes", "keypoints", "value", "array", "bytes", ...
  BoxFormat box_format = BoxFormat::kXyxy;  // of boxes
  bool clamps = true;                       // likewise: op::Boxes has both
};

// A column, member, feature or key of the source that no field reads.
struct UnopenedColumn {
  std::string name;    // in the source: "caption"
  std::string holds;   // its type: "text", "list of float32"; empty if not known
  std::string reason;  // "not a default field"
  std::string spec;    // opens it in OpenOptions::fields: "caption:text"; empty if it cannot be opened
  friend bool operator==(const UnopenedColumn&, const UnopenedColumn&) = default;
};

// A field whose column has a unit, an extension type or a mode, which is not applied to its values.
struct FieldRemark {
  std::string field;
  std::string unit;  // of a time: "us"; else empty
  std::string text;  // "int64, timestamp[us, tz=UTC]"
  friend bool operator==(const FieldRemark&, const FieldRemark&) = default;
};

struct DecodeLimit {
  std::uint64_t images = 0;
  std::uint64_t encoded_bytes = 0;
  double wall_s = 0;
  double cpu_s = 0;
  int threads = 0;
};

// A field that Dataset::views makes of an image.
struct View {
  std::string name = {};                   // empty: the image's field name, "_" and the place among the views
  std::vector<Operation> operations = {};  // on what the operations before views() give
  std::optional<int> count = {};           // so many, each drawn by itself, as one field (count, C, H, W)
  // Of its first operations: the view, by its place among those before, whose operation there is the same one and is
  // drawn alike, so that several views are of one random crop.
  std::vector<int> drawn_as = {};
};

class SampleReader;
struct MixOptions;

class Dataset {
 public:
  std::uint64_t size() const;
  const std::string& source() const;
  std::string format() const;                       // as OpenOptions::format says it
  const std::vector<std::string>& classes() const;  // label -> name; empty where unknown
  std::vector<UnopenedColumn> unopened() const;     // in the source's order
  std::vector<FieldRemark> remarks() const;
  const std::vector<Operation>& operations() const;

  // Appends an operation. Arguments are checked by check(), schema(), loader() and sample(), before any read.
  Dataset with(Operation operation) const;
  Dataset decode(ColorMode mode = ColorMode::kRgb) const { return with(op::Decode{mode}); }
  Dataset resize(int size) const { return with(op::Resize{{size, 0}, {}, Interpolation::kBilinear}); }
  Dataset resize(Size size) const { return with(op::Resize{size, {}, Interpolation::kBilinear}); }
  Dataset center_crop(int size) const { return with(op::CenterCrop{{size, size}}); }
  Dataset random_crop(int size) const {
    return with(op::RandomCrop{{size, size}, {}, false, {}, PaddingMode::kConstant});
  }
  Dataset random_resized_crop(int size) const { return with(op::RandomResizedCrop{{size, size}}); }
  Dataset random_horizontal_flip(double p = 0.5) const { return with(op::RandomHorizontalFlip{p}); }
  Dataset random_vertical_flip(double p = 0.5) const { return with(op::RandomVerticalFlip{p}); }
  Dataset pad(int padding) const {
    return with(op::Pad{{padding, padding, padding, padding}, {}, PaddingMode::kConstant});
  }
  Dataset grayscale(int num_output_channels = 1) const { return with(op::Grayscale{num_output_channels}); }
  Dataset normalize(std::vector<float> mean, std::vector<float> std) const {
    return with(op::Normalize{std::move(mean), std::move(std)});
  }
  Dataset to_dtype(DType dtype, bool scale = false) const { return with(op::ToDtype{dtype, scale}); }

  // Several views of one image: each is a field of the batch, in the place of the image's. The operations so far are
  // done once for all of them, and drawn once; those of a View are its own, and those behind views() are done to each
  // view, drawn by itself (Operation::fields names views). What is decoded of the image is decoded once, or for each
  // view, whichever costs less: the pixels are the same, but with Fidelity::kFast. Other fields go on as they are:
  // operations on all images and masks are for them as well, drawn by themselves.
  // field: the image, where a sample has several. A dataset has one views().
  // kConfig: no such image; a name that is empty, twice there, or another field's; no view, or more than kMostViews; a
  // count below 1; decode in a view; normalize or to_dtype before it; a field that a function of map() took. From now
  // on: cache(), which goes before it; several in one field that have no fixed size.
  Result<Dataset> views(std::vector<View> views, const std::string& field = {}) const;
  static constexpr std::size_t kMostViews = 254;  // of a sample, counted one by one
  // torchvision's FiveCrop and TenCrop: the four corners and the middle as one field (5, C, H, W) called like the
  // image, and the same five of the mirrored image behind them. kConfig: as views(). kData: an image is smaller.
  Result<Dataset> five_crop(Size size, const std::string& field = {}) const;
  Result<Dataset> ten_crop(Size size, bool vertical_flip = false, const std::string& field = {}) const;
  // views() as a call, and before which of operations() it is; nullopt: there is none.
  std::optional<std::pair<std::string, std::size_t>> viewed() const;

  // Keeps the 8-bit pixels that the operations so far give, from the first time that a sample is read, and does only
  // the operations behind it in every epoch. What comes out, and what is drawn, is what it would be without.
  // where: "memory" (one copy for all processes of this user on this machine that keep the same, freed with the last
  // of them), the path of a file (PATH.filling until every sample is in it), which later runs use, and open() reads, or
  // "device": the loader's GPU, where what is behind the cache is done then.
  // budget: bytes; samples over it are read and decoded in every epoch. 0: half of the memory that this process may
  // use; of a file, no limit; of a device, on which all samples must fit, what is free there.
  // kConfig: a random operation before it, one that gives other than 8-bit pixels, samples that are arrays, a second
  // cache, an operation behind "device" that is not done there. What stands at the path is looked at by loader() and
  // sample().
  Result<Dataset> cache(const std::string& where, std::uint64_t budget = 0) const;
  // How rows of these fields stand in a batch: kDense is arrays of one shape, kPadded is arrays whose first extent may
  // differ, kList anything. No fields: all that can. Text, bytes and JSON are lists without it, all else is dense; the
  // last word on a field counts.
  // kConfig: no such field, one whose rows cannot stand so, samples that are arrays.
  Result<Dataset> collate(BatchForm form, std::vector<std::string> fields = {}) const;
  // Gives each sample to a function, behind the operations so far and in the threads that make batches, and puts what
  // it gives in the place of the fields that it takes. It gets an image as the operations give it, of any size, and
  // every other field as a sample of one has it. What it gives has the dtype and shape that the first sound sample's
  // has (one of the first 16), unless collate() says otherwise; anything else is that sample's error. A dataset has one
  // function: this one takes the place of another, whose fields it must take as well.
  // kConfig: no such field; samples of different lengths. From now on: an operation on a field that the function takes,
  // cache().
  Result<Dataset> map(std::shared_ptr<const SampleFunction> function) const;
  // The samples at these indexes, in this order, with the operations of this one; random ones are drawn by the new
  // index. kConfig: no index, one that is out of range, a mixture, a cache.
  Result<Dataset> subset(std::vector<std::uint64_t> indices) const;
  // All samples at random in parts of so many, each as by subset(), in the order of this one. The same samples are in
  // the same part on every machine. classes: what each sample is of; each class is then shared out by the same ratio.
  // kConfig: as subset(), a part without samples, counts that are not size() in all, other numbers of classes.
  Result<std::vector<Dataset>> split(const std::vector<std::uint64_t>& counts, std::uint64_t seed,
                                     const std::vector<std::int64_t>& classes = {}) const;
  // A field of integers, of every sample: class folders know theirs, all others read each sample once. kConfig: no such
  // field.
  Result<std::vector<std::int64_t>> numbers(const std::string& field) const;
  // Where pixels are kept, and before which of operations(); nullopt: they are not.
  std::optional<std::pair<std::string, std::size_t>> cached() const;

  // Are the operations' arguments in range, and do they fit one after the other? kConfig names the operation. A
  // chain that has no fixed output size yet is fine here; schema() and loader() refuse it.
  Result<void> check() const;
  Result<Schema> schema() const;  // of one sample, batch extent not included
  // The fields as they are stored, but those that a function takes; of a format that gives rows, all "array".
  std::vector<FieldRole> roles() const;
  std::string explain() const;  // what runs, in which order, fused how
  // Samples up to and with each shard, where the format has shards; else empty.
  std::vector<std::uint64_t> shard_ends() const;
  std::uint64_t fingerprint() const;  // changes with the samples, their order, fields and weights

  // Sample `index` transformed as in `epoch` of a loader with `seed`. kConfig: index out of range.
  Result<Sample> sample(std::uint64_t index, std::uint64_t seed = 0, std::uint64_t epoch = 0) const;
  // What the random and size-dependent operations decide for it; reads the image's header only.
  Result<std::vector<DrawnValue>> draw(std::uint64_t index, std::uint64_t seed = 0, std::uint64_t epoch = 0) const;
  // The same for an image of `image` size, without any read: for tests of the distributions.
  Result<std::vector<DrawnValue>> draw(Size image, std::uint64_t sample, std::uint64_t seed, std::uint64_t epoch) const;
  // Stored bytes of the image field. For decoders of one's own.
  Result<std::vector<std::byte>> encoded(std::uint64_t index) const;
  std::string key(std::uint64_t index) const;  // relative path, or WebDataset key
  // Everything that is stored of a sample. kConfig: neither an image folder, nor tars, nor TFRecord files.
  Result<SampleFiles> files(std::uint64_t index) const;
  // How much that is: of tars by their indexes, of folders by asking the storage for each file's size.
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const;
  // Returns "16 bits", "32 bits" or "floats" once after any dataset or loader of this source read an image that loses
  // values as 8 bits; else an empty string.
  std::string take_image_depth() const;
  // Like sample(), for many of them.
  Result<SampleReader> reader(Layout layout = Layout::kNchw) const;

  // How fast this machine decodes just the needed regions of the first `images` samples, already in memory, with
  // `threads` threads: the ceiling of any loader over these samples.
  Result<DecodeLimit> measure_decode(std::uint64_t images, int threads, std::uint64_t seed = 0) const;

  // kConfig: an operation or option is wrong, the memory budget does not hold one batch, the dataset is empty.
  Result<Loader> loader(const LoaderOptions& options) const;
  Result<Loader> given_loader(const GivenOptions& options) const;

  struct Impl;
  explicit Dataset(std::shared_ptr<const Impl> impl);

 private:
  friend Result<Dataset> mix(const std::vector<Dataset>& datasets, const MixOptions& options);
  std::shared_ptr<const Impl> impl_;
};

// Decoded pixels that are in memory: 8-bit, rows one after the other, `channels` (1 or 3) interleaved.
struct GivenPixels {
  const std::uint8_t* data = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;
};

// Reads single samples, transformed, with the scratch memory kept from one to the next. Not for several threads at
// once.
class SampleReader {
 public:
  SampleReader(SampleReader&&) noexcept;
  SampleReader& operator=(SampleReader&&) noexcept;
  ~SampleReader();

  const Schema& schema() const;  // of one sample
  // As the loader makes it of a GivenSample, with its seed and the epoch. kConfig: index out of range.
  Result<Sample> read(GivenSample sample, std::uint64_t seed = 0, std::uint64_t epoch = 0);
  // An image file that is in memory already, as if it were stored in the dataset. kConfig: samples have other fields.
  Result<Sample> read(std::span<const std::byte> encoded, std::uint64_t draw, std::uint64_t seed = 0,
                      std::uint64_t epoch = 0);
  // Likewise an image that is decoded already. kConfig: no pixels, neither 1 nor 3 channels.
  Result<Sample> read(const GivenPixels& pixels, std::uint64_t draw, std::uint64_t seed = 0, std::uint64_t epoch = 0);

 private:
  friend class Dataset;
  struct Impl;
  explicit SampleReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// An array in memory. `data`: row i begins at data + i * stride, and its elements follow each other.
struct NamedArray {
  std::string name;
  const std::byte* data = nullptr;
  std::uint64_t rows = 0;
  std::ptrdiff_t stride = 0;  // bytes
  ArraySpec row;
  std::shared_ptr<void> owner;  // keeps the memory
  // Not empty: a ragged array. Sample i is the rows [offsets[i], offsets[i + 1]), which must touch each other.
  std::vector<std::int64_t> offsets = {};
  Element pad = {};  // of a ragged array: what stands in a batch behind its shorter samples
  // "array": rows as they are. "image": 8-bit pixels, (height, width), (height, width, 1 or 3) or (3, height, width);
  // "mask": labels of 8 or 16 bits, (height, width); "boxes": (N, 4); "keypoints": (N, 2) or (N, K, 2). What moves the
  // images moves the last three.
  std::string kind = "array";
};

// Samples are the rows of arrays with equally many; a field for each. A ragged array called "name" is a field of shape
// (kAnyLength, ...) and an int64 field "name_length" behind it, the sample's own first extent. Nothing is copied but
// the rows of a batch. Where one of them is more than an array, the samples are as those of stored files, with
// operations on them, and a ragged array's "name_length" stands in batches only.
// kConfig: no array, different numbers of samples, samples without elements (there, of images and masks), a name twice,
// offsets that do not go from 0 up to `rows`, an array that is not of its kind.
Result<Dataset> arrays(std::vector<NamedArray> arrays);

struct TokenFile {
  std::string path;
  std::uint64_t offset = 0;  // bytes before the first token, such as a header
};

// What a separator between documents means.
enum class Documents : std::uint8_t {
  kPack,   // windows as without one, and what belongs together within each of them
  kApart,  // no sample has tokens of two documents
};

struct TokenOptions {
  std::uint64_t window = 0;       // tokens of a sample, or of the longest with Documents::kApart
  std::uint64_t stride = 0;       // tokens from the start of a window to that of the next; 0: window
  DType stored = DType::kUint16;  // uint8, int16, uint16, int32, uint32 or int64, little-endian
  DType output = DType::kInt64;   // int32 or int64
  std::uint64_t vocabulary = 0;   // not 0: opening reads all files, and refuses a token that is not below it
  std::optional<std::int64_t> separator = {};  // the token that ends a document; the other options need it
  Documents documents = Documents::kPack;
  std::uint64_t shortest = 2;  // kApart: documents with fewer tokens, their separator among them, are left out
  std::int64_t pad = 0;        // kApart: what stands in x behind a shorter sample; in y it is kIgnoredTarget
  // Where all files fit into so many bytes, what was read of them stays in this process's memory. nullopt: a 64th of
  // usable memory, at most 256 MiB; 0: never.
  std::optional<std::uint64_t> memory_bytes = {};
};

// What stands in "y" where nothing is to be predicted: torch's cross_entropy leaves it out by default (ignore_index).
constexpr std::int64_t kIgnoredTarget = -100;

// Windows of token files: field "x" holds `window` tokens, "y" the same one token later. No window crosses the
// end of a file; what is left of one is not used.
// With kPack and a separator there is a third field, "document" (int32): the number of the token's document in the
// window, from 0. "y" is kIgnoredTarget at a separator, whose next token is another document's.
// With kApart a sample is a document, the separator at its end included, or a piece of one: those of more than
// window + 1 tokens are cut into pieces that begin `stride` tokens apart. "x" and "y" are ragged, "length" (int64) is
// their own length. Opening reads all files once; the index takes 12 bytes per sample.
// kConfig: a wrong option, a size that is no multiple of the token's, no file that holds a window, no separator in
// files that were read for it. kStorage: a file cannot be opened. kData: a token outside the vocabulary.
Result<Dataset> tokens(const std::vector<TokenFile>& files, const TokenOptions& options);

enum class MixUntil : std::uint8_t {
  kSamples,  // an epoch has MixOptions::samples
  kFirst,    // until one of the datasets would have to repeat a sample
  kLast,     // until all samples of all datasets have come
};

struct MixOptions {
  std::vector<double> weights;  // of samples, not of datasets' sizes; empty: by size, which is every sample once
  MixUntil until = MixUntil::kSamples;
  std::uint64_t samples = 0;  // 0: as many as all datasets have together
};

// Several datasets, of which each gives its share of every stretch of the order; one that ends starts over, in another
// order when shuffled. Sample i is that of the datasets one behind the other. A weight of 0 leaves a dataset out.
// kConfig: no dataset, one that is empty, different fields or operations, weights that are none, a mixture in one.
Result<Dataset> mix(const std::vector<Dataset>& datasets, const MixOptions& options = {});

// An image file that the caller names, or has in memory.
struct GivenImage {
  std::string path;                       // what errors call it; of one that is not in memory, where it lies
  std::span<const std::byte> bytes = {};  // its content, see GivenFiles::keep(); none: it is read from `path`
};

// Image files that the caller names while a loader runs: for datasets that are listed elsewhere. Copies share the
// files; every method is thread-safe.
class GivenFiles {
 public:
  explicit GivenFiles(std::string name);  // what errors call the dataset

  // One field, the image. Its samples are those that add() numbers.
  Dataset dataset() const;
  // The index of the first of `files` in the dataset; the others follow.
  std::uint64_t add(std::vector<GivenImage> files);
  // What the bytes of files in memory lie in: let go of with the last of the dataset and of the loaders on it.
  void keep(std::shared_ptr<const void> owner);
  // The files of the add() that gave `first` are not needed any more: reading one is an error from now on.
  void forget(std::uint64_t first);
  void forget_all();

  struct Impl;

 private:
  std::shared_ptr<const Impl> impl_;
};

// A folder of class folders, a pixel file (Dataset::cache), a .tar or .tar.gz, a TFRecord file, or a brace list of them
// ("shards/{000..146}.tar").
Result<Dataset> open(const std::string& source, const OpenOptions& options = {});

// What a reader would drop, merge or refuse in a source; works on damaged ones too, where open() fails.
Result<Inspection> inspect(const std::string& source, const OpenOptions& options = {});

// Usual names of a column of labels.
std::span<const std::string_view> label_names();

}  // namespace feedline
