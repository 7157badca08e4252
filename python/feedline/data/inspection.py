# SPDX-License-Identifier: Apache-2.0
"""What `feedline inspect` finds, in the words that all verbs share. The rules are the formats' own, in the engine."""

from __future__ import annotations

from .._engine import Inspection
from ..findings import Entry, Finding

# Pages: code, title, what it means, what to do. Which it is, an error, a warning or a note, the engine says.
_PAGES = (
    (
        "annotation_without_image",
        "annotations are of images that the file does not have",
        "They belong to no sample, and are left out, as others' readers leave them out in silence.",
        "Nothing, if the file was cut down to some of its images; else write it again.",
    ),
    (
        "bad_annotation",
        "an annotation has a value that cannot be used",
        "A sample that needs it is an error: a box or outline that is none, a class or file that is not there.",
        'Correct it; until then on_error="skip" leaves the sample out.',
    ),
    (
        "bad_checksum",
        "a member's header has a wrong checksum",
        "The tar file is damaged there, and nothing behind it can be read.",
        "Copy or download it again, and compare checksums.",
    ),
    (
        "bad_file",
        "an Arrow or Parquet file is damaged",
        "What describes it, a message or its footer, does not fit into it, so that nothing in it can be found.",
        "Copy, download or write it again.",
    ),
    (
        "bad_header",
        "a member's header cannot be understood",
        "The tar file is damaged there, or written in a form that no reader knows.",
        "Copy or download it again; or write it with another tar.",
    ),
    (
        "bad_json",
        "the JSON of a COCO file cannot be read",
        "It is damaged or cut, or lists an image twice, at the byte that is named.",
        "Copy, download or write it again.",
    ),
    (
        "bad_length",
        "the length of a TFRecord record is damaged",
        "Its checksum differs, so nothing says where the record ends, and nothing behind it can be found.",
        "Copy or download the file again.",
    ),
    (
        "bad_record",
        "the data of a TFRecord record is damaged",
        "Its checksum is not that of its bytes. The records before and behind it can be read.",
        'Copy or download the file again; until then on_error="skip" leaves the record out.',
    ),
    (
        "bad_sample",
        "a sample of an MDS or LitData shard is damaged",
        "The sizes of its values are not those of its bytes. The samples before and behind it can be read.",
        'Copy or download the shard again; until then on_error="skip" leaves the sample out.',
    ),
    (
        "bad_value",
        "a value of a sample is damaged",
        "Its bytes are not what its type says, or not where its key, page or buffer says: it is damaged, or was "
        "changed while it was copied. In Arrow and Parquet files it may also be one that its column cannot give, such "
        "as a list with a null in it.",
        'Copy or download it again, a database with mdb_copy; until then on_error="skip" leaves the sample out.',
    ),
    (
        "checksum_differs",
        "a shard has not the checksum that its index says",
        "It was changed, cut or damaged after it was written.",
        "Copy or download the shard again.",
    ),
    (
        "class_names_differ",
        "shards were packed with different class names",
        "A label means one class in some shards and another in others.",
        "Open those of one packing at a time, or map the labels.",
    ),
    (
        "class_without_images",
        "a class folder holds no image",
        "torchvision's ImageFolder refuses it, as the labels of all later classes would depend on it.",
        "Remove the folder, or put its images in.",
    ),
    (
        "column_has_meaning",
        "a column has a unit, an extension type or a mode",
        "Its schema has a unit, an extension type or a mode that is not applied: samples have the stored values.",
        "Interpret the values by it (for times, `dataset.schema` has the unit), or convert them.",
    ),
    (
        "count_differs",
        "a database says another number of samples than it has",
        "The entry num-samples is compared with the images. Some were never written, or were removed.",
        "Write the database again, or choose fields with fields=, which does not compare.",
    ),
    (
        "cut_record",
        "a TFRecord file ends within a record",
        "It was not copied, or not written, to its end.",
        "Copy, download or write it again.",
    ),
    (
        "damaged_array",
        "a .npy or .npz file is damaged, or holds what no batch can",
        "It is cut, its header does not fit to its size, a checksum differs, or it is of Python objects.",
        "Write it again, as arrays of numbers.",
    ),
    (
        "damaged_datum",
        "a Datum has not as many numbers as its extents say",
        "Its channels, height and width do not fit to its data.",
        "Write it again, or leave it out.",
    ),
    (
        "damaged_file",
        "a file of pixels is damaged",
        "Its header or its index does not fit to its size: it was cut, or changed after it was written.",
        "Pack it again.",
    ),
    (
        "damaged_gzip",
        "the gzip or zlib data of a shard is damaged",
        "It cannot be decompressed to its end: it was cut, or damaged when it was copied.",
        "Copy or download it again.",
    ),
    (
        "damaged_page",
        "a page of an LMDB file is damaged",
        "What is below it in the tree cannot be found. The file was cut, damaged, or copied as somebody wrote to it.",
        "Copy it again with mdb_copy, which waits for nobody and copies one state.",
    ),
    (
        "damaged_record",
        "a record of a file of pixels is damaged",
        "Its checksum is not that of its bytes.",
        "Copy the file again, or pack it again.",
    ),
    (
        "damaged_shard",
        "a shard of MDS or LitData is damaged",
        "Its table of samples, its size or its compressed data is not what the index of the dataset says.",
        "Copy or download the shard again.",
    ),
    (
        "damaged_table",
        "a table cannot be taken apart",
        "A line has more or fewer cells than there are columns, a quote that nothing ends, or is no JSON.",
        "Write that line again.",
    ),
    (
        "data_after_end",
        "bytes follow the end mark of a tar file",
        "Readers stop at the mark. Members behind it, as after `cat a.tar b.tar`, are lost.",
        "Join archives with `tar --concatenate`, or list them one by one.",
    ),
    (
        "decoded_by_pillow",
        "an image that Pillow decodes",
        "The engine decodes JPEG, PNG and WebP. Others go through Pillow, one at a time under Python's lock. Where "
        "it is not installed they are errors.",
        "Where many are read, write them as JPEG, PNG or WebP once.",
    ),
    (
        "duplicate_keys",
        "an LMDB database has several values of a key",
        "It was made with MDB_DUPSORT. A field of a sample is one value.",
        "Write it without.",
    ),
    (
        "duplicate_suffix",
        "a sample has two members with one suffix",
        "Which of them is the field cannot be told; others' readers take the last.",
        "Give each field of a sample a suffix of its own.",
    ),
    ("empty_file", "a file is empty", "A sample or a shard of no bytes cannot be decoded.", "Copy it again."),
    (
        "empty_value",
        "a value of an LMDB database is empty",
        "An image or a label of no bytes cannot be decoded.",
        "Write it again, or leave it out.",
    ),
    (
        "entries_differ",
        "an LMDB database has other entries than its root says",
        "The file is damaged, or was copied while a program wrote to it.",
        "Copy it again with mdb_copy.",
    ),
    (
        "feature_differs",
        "a feature has other values than in the first records",
        "Its type or its number of values is not that of the field, which the first records of the dataset decided.",
        'Write the record anew, or say with fields= what the feature is, as with "NAME:array" of any number of values.',
    ),
    (
        "foreign_index",
        "an index of another program is not of its shard",
        "A .tfindex or .idx beside a TFRecord file has other records than the file. Feedline makes its own.",
        "Remove it, or make it anew.",
    ),
    (
        "key_list_differs",
        "meta_info.txt names keys that the database does not have",
        "The list beside the database says which samples there are, and in which order.",
        "Write the list anew, or remove it: then keys are taken in their own order.",
    ),
    (
        "key_not_adjacent",
        "members of one key do not stand side by side",
        "A reader that goes through the archive makes two samples of them, each without some fields.",
        "Write the archive sorted by name: `tar --sort=name`.",
    ),
    (
        "marked_bad",
        "a sample is marked as bad",
        "A member `__bad__` with content says so, and the sample is dropped, as WebDataset does.",
        "Nothing, if that was meant.",
    ),
    (
        "member_without_dot",
        "a member's name has no key and extension",
        "It belongs to no sample, and is skipped.",
        "Name members KEY.EXTENSION.",
    ),
    (
        "merged_folders",
        "folders within a class folder become one class",
        "A class is a folder directly below the source, so all folders within it are one.",
        "Open the folder that holds the classes.",
    ),
    (
        "missing_field",
        "a sample lacks a field that others have",
        "A batch needs the field of every sample.",
        "Write it, leave the sample out, or choose other fields with fields=.",
    ),
    (
        "missing_file",
        "a file that a table names cannot be read",
        "It is not there, or may not be read; paths start from the folder of the table.",
        "Put it there, or take the line out.",
    ),
    (
        "named_databases",
        "an LMDB file holds several databases",
        "One is read of a file, and none of them is the first.",
        "Copy one to a file of its own.",
    ),
    (
        "no_classes",
        "the folder has no class folders with images",
        "Labels come from the names of folders, and there are none.",
        "Open the folder that holds the classes; images without classes go into one folder of it.",
    ),
    (
        "no_end_of_archive",
        "a tar file ends without its end mark",
        "It was cut while it was written or copied; the last member may be cut as well.",
        "Copy, download or write it again.",
    ),
    ("no_field", "no field can be read", "No member has a suffix that is known.", "Choose members with fields=."),
    (
        "no_images",
        "the image files of a COCO file are in none of the usual folders",
        "Where they are does not stand in the file.",
        "Say it with images=.",
    ),
    (
        "no_samples",
        "a shard holds no sample",
        "All of its members are skipped, or it has none.",
        "Leave it out, or write it again.",
    ),
    (
        "not_a_datum",
        "a value is no Datum, as the first ones are",
        "It was written as something else, or is damaged.",
        "Write it as a Datum, or leave it out.",
    ),
    (
        "not_an_example",
        "a record is no tf.train.Example",
        "Its checksum is right, so it was written so: as a message of another type, or as plain bytes.",
        "Write it as tf.train.Example or SequenceExample, or leave it out.",
    ),
    (
        "not_an_integer",
        "the member of a label is not an integer",
        "A label is a number in text, such as 17.",
        "Write the class's number there, or read images alone.",
    ),
    (
        "not_regular",
        "a member is a symbolic link or a device, not a file",
        "It has no data, and is skipped. Hard links are read: they have the data of the member that they link to.",
        "Write the archive with `--dereference`.",
    ),
    (
        "link_without_target",
        "a hard link's member is not in the archive",
        "The archive does not contain the member that the link refers to, so the sample has no data for it.",
        "Write the archive again with the files that its links refer to.",
    ),
    (
        "not_tar",
        "the file is no tar file",
        "Its first block is no header: it is compressed in an unknown way, or something else altogether.",
        "Look what it is with `file`, and unpack it.",
    ),
    (
        "other_files",
        "files of other kinds lie in the class folders",
        "They are no images by their names, and are not read.",
        "Nothing, if that was meant.",
    ),
    (
        "reserved_name",
        "a member is metadata",
        "Names that begin and end with underscores are metadata, as WebDataset has it, and are skipped.",
        "Nothing.",
    ),
    (
        "schema_differs",
        "an Arrow or Parquet file has other columns than the first one",
        "A column that a field takes is not there, or holds values of another type.",
        "Write the files alike, or choose other columns with fields=.",
    ),
    (
        "sparse_member",
        "a member is stored sparse",
        "Its bytes do not stand in the archive as they are in the file.",
        "Write the archive without `--sparse`.",
    ),
    (
        "stray_file",
        "a file lies beside the class folders",
        "Only what is in class folders is read.",
        "Put it into a class, or away.",
    ),
    (
        "too_large",
        "a record is larger than a sample may be",
        "A length of more bytes than memory is given to one sample.",
        "Raise memory_budget if it is meant to be so large.",
    ),
    (
        "truncated_header",
        "a tar file is cut inside a header",
        "It was not copied to its end.",
        "Copy or download it again.",
    ),
    (
        "truncated_member",
        "a tar file is cut inside a member",
        "It was not copied to its end.",
        "Copy or download it again.",
    ),
    (
        "unknown_checksum",
        "the index has checksums of a shard that are not compared",
        "They are of an algorithm that is not here, which has md5, sha1, sha256, xxh32, xxh64, xxh3_64 and xxh128.",
        "Write the shards with one of those, or compare them with the program that wrote them.",
    ),
    (
        "unknown_extension",
        "files of an unknown extension are not read",
        "A reader knows images by .jpg, .jpeg, .png and .webp.",
        "Rename or convert them.",
    ),
    (
        "unlabeled_image",
        "images of a YOLO set have no label file",
        "They are background: images without objects, as YOLO's own tools take them.",
        "Nothing, if that was meant.",
    ),
    (
        "unread_column",
        "no field takes a column",
        "It is stored, and not read; of Arrow and Parquet files it costs no time.",
        "Nothing, if that was meant; else name it in fields=.",
    ),
    (
        "unread_feature",
        "features that no field takes are not read",
        "They are read from storage with their record, and nobody sees them.",
        "Choose them with fields=, if they are wanted.",
    ),
    (
        "unread_key",
        "entries of a database are of no field",
        "Their keys fit to no pattern, and they are not read.",
        "Nothing, if that was meant; fields= chooses.",
    ),
    (
        "unread_member",
        "members that no field takes are not read",
        "They take space and time of reading, and nobody sees them.",
        "Choose them with fields=, or pack the shards without them.",
    ),
    (
        "unreadable_file",
        "a file cannot be read",
        "The system refuses it: it is gone, or rights are missing.",
        "Look at its rights, and whether the storage is mounted.",
    ),
    (
        "value_differs",
        "a value is of another kind than the first ones",
        "A field is an image, or an array, in all samples.",
        "Write it like the others, or leave it out.",
    ),
    (
        "zero_filled_tail",
        "a tar file ends in megabytes of zeros",
        "A preallocated file that was never filled, or a download that was broken off.",
        "Copy or download it again.",
    ),
)
_RECOGNISED = "Seen while the source is listed or its shards are scanned, at the shard, key and byte that are named."


def entries() -> list[Entry]:
    """The pages of all that is found in a source."""
    return [
        Entry(code, "inspect", title, means, _RECOGNISED, to_do, "Images are decoded only with --show, and few.")
        for code, title, means, to_do in _PAGES
    ]


def findings_of(inspected: Inspection) -> list[Finding]:
    """What an inspection found, errors first; `about` has the shard and the key, "" where it is about neither."""
    return [
        Finding(one.code, one.severity, evidence=(one.text,), about={"shard": one.shard, "key": one.key})
        for one in inspected.findings
    ]
