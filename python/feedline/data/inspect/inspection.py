# SPDX-License-Identifier: Apache-2.0
"""Texts of the findings of `feedline inspect`, which the engine's format readers detect."""

from __future__ import annotations

from ..._engine import Inspection
from ...findings import Entry, Finding

# Pages: code, title, meaning, remedy. The engine sets the severity: error, warning or note.
_PAGES = (
    (
        "annotation_without_image",
        "annotations refer to images that are not in the file",
        "These annotations do not belong to any sample and are ignored; other readers ignore them silently.",
        "Do nothing if images were removed from the file on purpose; otherwise write the file again.",
    ),
    (
        "bad_annotation",
        "an annotation has an invalid value",
        "Samples that need the annotation raise an error: a box or outline is invalid, or a class or file is missing.",
        'Correct the annotation; until then on_error="skip" leaves the sample out.',
    ),
    (
        "bad_checksum",
        "a member's header has a wrong checksum",
        "The tar file is damaged at this point, and nothing after it can be read.",
        "Copy or download the file again and compare checksums.",
    ),
    (
        "bad_file",
        "an Arrow or Parquet file is damaged",
        "The metadata (a message or the footer) is larger than the file, so no data can be found.",
        "Copy, download or write the file again.",
    ),
    (
        "bad_header",
        "a member's header is invalid",
        "The tar file is damaged at this point, or its variant is unknown.",
        "Copy or download the file again, or write it with another tar program.",
    ),
    (
        "bad_json",
        "the JSON of a COCO file cannot be read",
        "The JSON is damaged or truncated at the given byte, or lists an image twice.",
        "Copy, download or write the file again.",
    ),
    (
        "bad_length",
        "the length of a TFRecord record is damaged",
        "The length's checksum differs, so the end of the record is unknown and no later record can be read.",
        "Copy or download the file again.",
    ),
    (
        "bad_record",
        "the data of a TFRecord record is damaged",
        "The record's checksum does not match its contents. Other records can be read.",
        'Copy or download the file again; until then on_error="skip" leaves the record out.',
    ),
    (
        "bad_sample",
        "a sample of an MDS or LitData shard, or of a plugin's file, is damaged",
        "The stored sizes of the sample's values do not match its contents, or the plugin reports damage. Other "
        "samples can be read.",
        'Copy or download the shard again; until then on_error="skip" leaves the sample out.',
    ),
    (
        "bad_value",
        "a value of a sample is damaged",
        "The value does not match its type, or is not at the position that its key, page or buffer gives: it is "
        "damaged, or was changed while it was copied. In Arrow and Parquet files it may also be an unsupported "
        "value, such as a list with a null in it.",
        'Copy or download the file again (a database with mdb_copy); until then on_error="skip" leaves the sample out.',
    ),
    (
        "checksum_differs",
        "a shard's checksum does not match its index",
        "The shard was changed, truncated or damaged after it was written.",
        "Copy or download the shard again.",
    ),
    (
        "class_names_differ",
        "shards were packed with different class names",
        "A label means different classes in different shards.",
        "Open the shards of each pack run separately, or map the labels.",
    ),
    (
        "class_without_images",
        "a class folder contains no images",
        "torchvision's ImageFolder rejects an empty class folder, because it shifts the labels of all later classes.",
        "Remove the folder, or put its images into it.",
    ),
    (
        "column_has_meaning",
        "a column has a unit, an extension type or a mode that is not applied",
        "The unit, extension type or mode in the schema is not applied: samples contain the stored values.",
        "Apply the unit to the values (`dataset.schema` contains the units of timestamps), or convert them.",
    ),
    (
        "compressed_blocks",
        "compressed blocks are read at random",
        "Compressed pages and record batches are decompressed as a whole, even to read one sample. Shuffled reads "
        "decompress those that do not fit into memory a second time, and then read them from the cache folder.",
        'Pass shuffle="shards" to the loader, write the files without compression or in smaller row groups, or make '
        "room in the cache folder.",
    ),
    (
        "count_differs",
        "a database's sample count is wrong",
        "The entry num-samples differs from the number of images. Some images were never written, or were removed.",
        "Write the database again, or choose fields with fields=, which skips this check.",
    ),
    (
        "cut_record",
        "a TFRecord file ends within a record",
        "The file was not copied or written completely.",
        "Copy, download or write the file again.",
    ),
    (
        "damaged_array",
        "a .npy or .npz file is damaged or has an unsupported type",
        "The file is truncated, its header or a checksum does not match, or it contains Python objects.",
        "Write the file again as arrays of numbers.",
    ),
    (
        "damaged_datum",
        "a Datum's data does not match its shape",
        "The Datum's channels, height and width do not match its number of values.",
        "Write the value again, or leave it out.",
    ),
    (
        "damaged_file",
        "a pixel file is damaged",
        "The header or the index does not match the file's size: the file was truncated or changed.",
        "Pack the file again.",
    ),
    (
        "damaged_gzip",
        "the gzip or zlib data of a shard is damaged",
        "The data cannot be decompressed completely: the shard was truncated, or damaged when it was copied.",
        "Copy or download the file again.",
    ),
    (
        "damaged_page",
        "a page of an LMDB file is damaged",
        "The entries below this page in the tree cannot be found. The file was truncated, damaged, or copied "
        "during a write.",
        "Copy the file again with mdb_copy, which copies a consistent snapshot without locking.",
    ),
    (
        "damaged_record",
        "a record of a pixel file is damaged",
        "The record's checksum does not match its contents.",
        "Copy the file again, or pack it again.",
    ),
    (
        "damaged_shard",
        "a shard of MDS or LitData is damaged",
        "The shard's sample table, size or compressed data does not match the dataset's index.",
        "Copy or download the shard again.",
    ),
    (
        "damaged_table",
        "a table cannot be parsed",
        "A line has the wrong number of cells, an unterminated quote, or invalid JSON.",
        "Correct that line.",
    ),
    (
        "data_after_end",
        "bytes follow the end marker of a tar file",
        "Readers stop at the end marker. Later members, such as those of b.tar after `cat a.tar b.tar`, are lost.",
        "Join archives with `tar --concatenate`, or list them separately.",
    ),
    (
        "decoded_by_pillow",
        "an image is decoded by Pillow",
        "The engine does not support the image's format. Pillow decodes such images, one at a time under the GIL. "
        "If Pillow is not installed, reading them raises an error.",
        "If there are many such images, convert them to JPEG, PNG or WebP.",
    ),
    (
        "duplicate_keys",
        "an LMDB database has several values for one key",
        "The database was created with MDB_DUPSORT. A field of a sample must be a single value.",
        "Write the database without MDB_DUPSORT.",
    ),
    (
        "duplicate_suffix",
        "a sample has two members with the same suffix",
        "The field is ambiguous; other readers use the last member.",
        "Give each field of a sample a different suffix.",
    ),
    ("empty_file", "a file is empty", "An empty sample or shard cannot be decoded.", "Copy the file again."),
    (
        "empty_document",
        "documents of a token file have no tokens",
        "The index contains documents or sequences of length 0, for example from empty texts.",
        "None needed: `pack_sequences()` skips and counts them. `feedline tokenize` leaves out empty texts.",
    ),
    (
        "empty_value",
        "a value of an LMDB database is empty",
        "An empty image or label cannot be decoded.",
        "Write the value again, or leave it out.",
    ),
    (
        "entries_differ",
        "an LMDB database's entry count does not match its root",
        "The file is damaged, or was copied during a write.",
        "Copy the file again with mdb_copy.",
    ),
    (
        "feature_differs",
        "a feature's values differ from those of the first records",
        "The feature's type or number of values differs from the field's, which the first records determine.",
        'Write the record again, or set the type in fields=, such as "NAME:array" for any number of values.',
    ),
    (
        "foreign_index",
        "another program's index does not match its shard",
        "A .tfindex or .idx next to a TFRecord file does not match the file. Feedline builds its own index.",
        "Remove the index, or rebuild it.",
    ),
    (
        "key_list_differs",
        "meta_info.txt lists keys that are not in the database",
        "The list next to the database defines the samples and their order.",
        "Write the list again, or remove it; without the list, samples are in key order.",
    ),
    (
        "key_not_adjacent",
        "members of one key are not adjacent",
        "A sequential reader splits such members into two samples, each of which lacks some fields.",
        "Write the archive sorted by name: `tar --sort=name`.",
    ),
    (
        "marked_bad",
        "a sample is marked as bad",
        "The sample has a non-empty member `__bad__` and is dropped, as in WebDataset.",
        "Do nothing if this is intended.",
    ),
    (
        "member_without_dot",
        "a member's name does not have the form KEY.EXTENSION",
        "The member does not belong to a sample and is skipped.",
        "Name members KEY.EXTENSION.",
    ),
    (
        "merged_folders",
        "folders within a class folder become one class",
        "A class is a folder directly below the source, so all folders within it form one class.",
        "Open the folder that contains the classes.",
    ),
    (
        "missing_field",
        "a sample lacks a field that other samples have",
        "A batch needs the field in every sample.",
        "Add the field, leave the sample out, or choose other fields with fields=.",
    ),
    (
        "missing_file",
        "a file listed in a table cannot be read",
        "The file does not exist or is not readable; paths are relative to the table's folder.",
        "Add the file, or remove the line.",
    ),
    (
        "named_databases",
        "an LMDB file contains several databases",
        "Only one database per file is supported.",
        "Copy one database to a separate file.",
    ),
    (
        "no_classes",
        "the folder has no class folders with images",
        "Labels come from the names of class folders, but there are no such folders.",
        "Open the folder that contains the classes; put images without classes into one subfolder.",
    ),
    (
        "no_end_of_archive",
        "a tar file ends without its end marker",
        "The file was truncated while it was written or copied; the last member may be truncated as well.",
        "Copy, download or write the file again.",
    ),
    ("no_field", "no field can be read", "No member has a known suffix.", "Choose members with fields=."),
    (
        "no_images",
        "the image files of a COCO file are not in any of the usual folders",
        "The COCO file does not contain the location of the images.",
        "Set the folder with images=.",
    ),
    (
        "no_samples",
        "a shard contains no samples",
        "The shard has no members, or all members are skipped.",
        "Leave the shard out, or write it again.",
    ),
    (
        "not_a_datum",
        "a value is not a Datum, unlike the first values",
        "The value has another type, or is damaged.",
        "Write the value as a Datum, or leave it out.",
    ),
    (
        "not_an_example",
        "a record is not a tf.train.Example",
        "The checksum matches, so the record is not damaged, but it is a message of another type, or plain bytes.",
        "Write the record as tf.train.Example or SequenceExample, or leave it out.",
    ),
    (
        "not_an_integer",
        "a label's member is not an integer",
        "A label must be a number written as text, such as 17.",
        "Write the number of the class into the member, or read only images.",
    ),
    (
        "not_regular",
        "a member is a symbolic link or a device, not a file",
        "A link or device has no data and is skipped. Hard links are read, with the data of their target.",
        "Write the archive with `--dereference`.",
    ),
    (
        "link_without_target",
        "a hard link's member is not in the archive",
        "The archive does not contain the member that the link refers to, so the sample lacks data.",
        "Write the archive again with the files that its links refer to.",
    ),
    (
        "not_tar",
        "the file is not a tar file",
        "The first block is not a tar header: the file has an unknown compression or another format.",
        "Identify the file with `file`, and unpack it.",
    ),
    (
        "other_files",
        "class folders contain files of other types",
        "Files whose extension is not an image extension are not read.",
        "Do nothing if this is intended.",
    ),
    (
        "other_label",
        "a file occurs in several rows with different values",
        "Rows of feedline.files() or feedline.table() have the same image, but different labels or other values.",
        "Correct the labels or remove the wrong rows; do nothing if the rows are meant to differ.",
    ),
    (
        "reserved_name",
        "a member is metadata",
        "Names that begin and end with underscores are metadata, as in WebDataset, and are skipped.",
        "Nothing.",
    ),
    (
        "schema_differs",
        "an Arrow or Parquet file's columns differ from those of the first file",
        "A column that a field reads is missing or has another type.",
        "Write the files with the same schema, or choose other columns with fields=.",
    ),
    (
        "sparse_member",
        "a member is a sparse file",
        "The member's bytes in the archive differ from the contents of the file.",
        "Write the archive without `--sparse`.",
    ),
    (
        "stray_file",
        "a file is next to the class folders",
        "Only files in class folders are read.",
        "Move the file into a class folder, or elsewhere.",
    ),
    (
        "too_large",
        "a record exceeds the size limit of a sample",
        "The record's length exceeds the memory for one sample.",
        "Raise memory_budget if the size is intended.",
    ),
    (
        "truncated_header",
        "a tar file is truncated inside a header",
        "The file was not copied completely.",
        "Copy or download the file again.",
    ),
    (
        "truncated_member",
        "a tar file is truncated inside a member",
        "The file was not copied completely.",
        "Copy or download the file again.",
    ),
    (
        "unknown_checksum",
        "a shard's checksums in the index are not verified",
        "The checksums' algorithm is not supported; md5, sha1, sha256, xxh32, xxh64, xxh3_64 and xxh128 are supported.",
        "Write the shards with one of these algorithms, or verify them with the program that wrote them.",
    ),
    (
        "unknown_extension",
        "files with an unknown extension are not read",
        "Class folders are read as in torchvision's ImageFolder: only files with its image extensions are samples.",
        "Rename or convert the files.",
    ),
    (
        "unlabeled_image",
        "images of a YOLO set have no label file",
        "These images are background: they have no objects, as in YOLO's own tools.",
        "Do nothing if this is intended.",
    ),
    (
        "unread_column",
        "no field reads a column",
        "The column is not read; in Arrow and Parquet files it costs no time.",
        "Do nothing if this is intended; otherwise add the column to fields=.",
    ),
    (
        "unread_feature",
        "features without a field are not returned",
        "These features are read from storage with their record and discarded.",
        "Add the features to fields= if you need them.",
    ),
    (
        "unread_key",
        "some entries of a database do not belong to any field",
        "The keys of these entries do not match any pattern, so the entries are not read.",
        "Do nothing if this is intended; otherwise select the entries with fields=.",
    ),
    (
        "unread_member",
        "members without a field are not returned",
        "These members use space and reading time but are not needed.",
        "Select the members with fields=, or pack the shards without them.",
    ),
    (
        "unreadable_file",
        "a file cannot be read",
        "The system denies access: the file was removed, or permissions are missing.",
        "Check the file's permissions, and that the storage is mounted.",
    ),
    (
        "value_differs",
        "a value's type differs from that of the first values",
        "A field must be an image in all samples, or an array in all samples.",
        "Write the value with the same type as the others, or leave it out.",
    ),
    (
        "zero_filled_tail",
        "a tar file ends in megabytes of zeros",
        "The file was preallocated and never filled, or its download was interrupted.",
        "Copy or download the file again.",
    ),
)
_RECOGNISED = "Found while listing the source or scanning its shards, at the given shard, key and byte."


def entries() -> list[Entry]:
    """Returns the documentation pages of all findings about sources."""
    return [
        Entry(code, "inspect", title, means, _RECOGNISED, to_do, "Images are decoded only with --show, and only a few.")
        for code, title, means, to_do in _PAGES
    ]


def findings_of(inspected: Inspection) -> list[Finding]:
    """Returns an inspection's findings, errors first; `about` is the shard and the key, "" if neither applies."""
    return [
        Finding(one.code, one.severity, evidence=(one.text,), about={"shard": one.shard, "key": one.key})
        for one in inspected.findings
    ]
