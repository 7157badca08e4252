# SPDX-License-Identifier: Apache-2.0
"""Writes TFRecord files with TensorFlow, and prints what TensorFlow reads back. Run by its own interpreter."""

import json
import sys

import numpy as np
import tensorflow as tf

folder, draw = sys.argv[1], np.random.default_rng(7)


def feature(**one):
    return tf.train.Feature(**one)


def example(i):
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "n": feature(int64_list=tf.train.Int64List(value=[int(draw.integers(-(2**63), 2**63))])),
                "many": feature(
                    int64_list=tf.train.Int64List(value=[int(x) for x in draw.integers(-1000, 1000, i % 7)])
                ),
                "x": feature(float_list=tf.train.FloatList(value=draw.normal(size=i % 4).astype(np.float32).tolist())),
                "raw": feature(bytes_list=tf.train.BytesList(value=[draw.bytes(int(draw.integers(0, 3000)))])),
                "not_set": feature(),
            }
        )
    )


def sequence(i):
    steps = [tf.train.Feature(float_list=tf.train.FloatList(value=[t, t / 2])) for t in range(i % 5)]
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={"n": feature(int64_list=tf.train.Int64List(value=[i]))}),
        feature_lists=tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=steps)}),
    )


wanted = {}
for name, kind in (("plain", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")):
    path = f"{folder}/{name}.tfrecord"
    with tf.io.TFRecordWriter(path, kind) as writer:
        for i in range(200):
            writer.write(example(i).SerializeToString())
    read = tf.io.parse_example(
        tf.stack(list(tf.data.TFRecordDataset(path, kind))),
        {
            "n": tf.io.FixedLenFeature([], tf.int64),
            "many": tf.io.RaggedFeature(tf.int64),
            "x": tf.io.RaggedFeature(tf.float32),
            "raw": tf.io.FixedLenFeature([], tf.string),
        },
    )
    columns = read["n"].numpy().tolist(), read["many"].to_list(), read["x"].to_list(), read["raw"].numpy()
    wanted[name] = [[n, many, x, raw.hex()] for n, many, x, raw in zip(*columns, strict=True)]
with tf.io.TFRecordWriter(f"{folder}/sequence.tfrecord") as writer:
    for i in range(1, 60):
        writer.write(sequence(i).SerializeToString())
print(json.dumps(wanted))
