# SPDX-License-Identifier: Apache-2.0
"""Options of loader() and of its methods."""

import os
import threading

import feedline
from messages.expressions import expressions, functions
from messages.samples import Samples, png, read


def _a_closed_loader_has_no_metrics(s: Samples) -> None:
    loader = s.numbers.loader(2, output="numpy")
    loader.close()
    loader.metrics()


def _an_iterator_ended_by_another(s: Samples) -> None:
    with s.numbers.loader(2, output="numpy") as loader:
        first = iter(loader)
        next(first)
        iter(loader)
        next(first)


def _an_iterator_of_a_closed_loader(s: Samples) -> None:
    loader = s.numbers.loader(2, output="numpy")
    iterator = iter(loader)
    loader.close()
    next(iterator)


def _a_closed_loader_is_iterated(s: Samples) -> None:
    loader = s.numbers.loader(2, output="numpy")
    loader.close()
    iter(loader)


def _every_sample_of_an_endless_loader_is_skipped(s: Samples) -> None:
    for name in ("1.jpg", "2.jpg"):
        s.write(f"bad/a/{name}", "text")
    loader = feedline.open("here/bad").resize((8, 8)).loader(2, output="numpy", on_error="skip", epochs=float("inf"))
    next(iter(loader))


def _more_bad_samples_than_the_budget(s: Samples) -> None:
    for name in ("1.jpg", "2.jpg"):
        s.write(f"bad/a/{name}", "text")
    read(feedline.open("here/bad").resize((8, 8)), on_error="skip", error_budget=1)


def _rank_without_world_size_in_the_environment(s: Samples) -> None:
    s.patch.setenv("RANK", "1")
    read(s.numbers)


def _world_size_without_rank_in_the_environment(s: Samples) -> None:
    s.patch.setenv("WORLD_SIZE", "2")
    read(s.numbers)


def _a_rank_in_the_environment_that_is_not_a_number(s: Samples) -> None:
    s.patch.setenv("RANK", "first")
    s.patch.setenv("WORLD_SIZE", "2")
    read(s.numbers)


def _a_rank_in_the_environment_above_the_world_size(s: Samples) -> None:
    s.patch.setenv("RANK", "2")
    s.patch.setenv("WORLD_SIZE", "2")
    read(s.numbers)


def _a_slurm_rank_without_a_size(s: Samples) -> None:
    s.patch.setenv("SLURM_PROCID", "1")
    read(s.numbers)


def _a_loader_used_after_fork(s: Samples) -> None:
    loader = s.numbers.loader(2, output="numpy", num_workers=1)
    next(iter(loader))
    raise feedline.ConfigError(_of_child(lambda: next(iter(loader))))


def _of_child(call: object) -> str:
    """Returns the message of an error of `call` in a child process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            call()  # type: ignore[operator]
        except Exception as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read().decode()
    os.waitpid(pid, 0)
    return text


def _metrics_with_a_port_in_use(s: Samples) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        try:
            s.numbers.loader(2, output="numpy").metrics(port=port)
        except feedline.ConfigError as error:
            raise type(error)(str(error).replace(str(port), "PORT")) from None


def _a_bad_field_name_of_a_batch(s: Samples) -> None:
    with s.images.resize((8, 8)).loader(2, output="numpy") as loader:
        next(iter(loader)).mask  # noqa: B018


def _mixup_of_masks(s: Samples) -> None:
    s.write("pairs/images/1.jpg", s.jpeg)
    s.write("pairs/masks/1.png", png(50, 60, 1))
    dataset = feedline.open("here/pairs", fields=("images/{key}.jpg", "masks/{key}.png:mask"))
    dataset.resize((8, 8)).loader(1, output="numpy", mixup=0.2, dtype="float32")


def _a_label_above_num_classes(s: Samples) -> None:
    members = [(f"{i}.{end}", data) for i in range(4) for end, data in (("jpg", s.jpeg), ("cls", str(5 * i)))]
    read(feedline.open(s.write_tar(*members)).resize((8, 8)), mixup=0.2, num_classes=12, dtype="float32")


def _set_epoch_of_another_thread(s: Samples) -> None:
    with s.numbers.loader(2, output="numpy") as loader:
        iterator = iter(loader)
        next(iterator)
        thread = threading.Thread(target=lambda: loader.load_state_dict(loader.state_dict()))
        thread.start()
        thread.join()
        next(iterator)


def _metrics_of_two_loaders_of_one_name(s: Samples) -> None:
    with s.numbers.loader(2, output="numpy") as first, s.numbers.loader(2, output="numpy") as second:
        port = first.metrics(name="train").rpartition(":")[2].strip("/").partition("/")[0]
        try:
            second.metrics(port=int(port), name="train")
        except feedline.ConfigError as error:
            raise type(error)(str(error).replace(port, "PORT")) from None


CASES = {
    **expressions("""
        small.loader(0, output="numpy")
        small.loader(-1, output="numpy")
        small.loader(1.5, output="numpy")
        small.loader("4", output="numpy")
        small.loader(output="numpy")
        small.loader(True, output="numpy")
        small.loader(2**63, output="numpy")
        small.loader(2**48, output="numpy", world_size=2, rank=0)
        images.loader(2, output="numpy")
        small.loader(2, shuffle="yes", output="numpy")
        small.loader(2, shuffle=1, output="numpy")
        small.loader(2, seed=-1, output="numpy")
        small.loader(2, seed=0.5, output="numpy")
        small.loader(2, drop_last=1, output="numpy")
        small.loader(2, num_workers=-1, output="numpy")
        small.loader(2, num_workers="all", output="numpy")
        small.loader(2, num_workers=2.0, output="numpy")
        small.loader(2, num_workers=10**6, output="numpy")
        small.loader(2, memory_budget=0, output="numpy")
        small.loader(2, memory_budget="much", output="numpy")
        small.loader(2, memory_budget="1 XB", output="numpy")
        small.loader(2, memory_budget=1.5, output="numpy")
        small.loader(2, memory_budget=1, output="numpy")
        small.loader(2, in_order=0, output="numpy")
        small.loader(2, memory_budget=2**70, output="numpy")
        small.loader(100, drop_last=True, epochs=inf, output="numpy")
        numbers.loader(2, output="numpy").load_state_dict([1])
        small.loader(2, on_error="ignore", output="numpy")
        small.loader(2, error_budget=-1, output="numpy")
        small.loader(2, uneven="even", output="numpy")
        small.loader(2, epochs=0, output="numpy")
        small.loader(2, epochs=1.5, output="numpy")
        small.loader(2, epochs="many", output="numpy")
        small.loader(2, device="mps", output="numpy")
        small.loader(2, device="cuda:x", output="numpy")
        small.loader(2, device=-1, output="numpy")
        small.loader(2, device=1.5, output="numpy")
        small.loader(2, device="cuda", output="numpy")
        small.loader(2, dtype="float64", output="numpy")
        small.loader(2, dtype="bfloat16", output="numpy")
        small.loader(2, dtype=float, output="numpy")
        small.loader(2, layout="NCWH", output="numpy")
        small.loader(2, output="jax")
        small.loader(2, output="tv_tensors", layout="NHWC")
        small.loader(2, timeout=0, output="numpy")
        small.loader(2, timeout=nan, output="numpy")
        small.loader(2, timeout="5", output="numpy")
        small.loader(2, rank=0, output="numpy")
        small.loader(2, world_size=2, output="numpy")
        small.loader(2, rank=2, world_size=2, output="numpy")
        small.loader(2, rank=-1, world_size=2, output="numpy")
        small.loader(2, rank=0, world_size=100, output="numpy")
        small.loader(2, mesh=3, output="numpy")
        small.loader(2, dp="dp", output="numpy")
        small.loader(2, mesh=3, rank=0, world_size=1, output="numpy")
        small.loader(2, repeat=0, output="numpy")
        small.loader(2, repeat=10**9, output="numpy")
        small.loader(2, shuffle=True, shuffle_window=0, output="numpy")
        tar.resize((8, 8)).loader(2, shuffle="shards", shuffle_window=-1, output="numpy")
        small.loader(2, buckets=[], output="numpy")
        small.loader(2, buckets=4, output="numpy")
        small.loader(2, max_tokens=8, output="numpy")
        lengths.loader(2, buckets="many", output="numpy")
        lengths.loader(2, buckets=[3, 2], output="numpy")
        lengths.loader(2, buckets=[0, 9], output="numpy")
        lengths.loader(2, buckets=[2, 4], output="numpy")
        lengths.loader(max_tokens=8, output="numpy")
        lengths.loader(buckets=[2, 6], max_tokens=1, output="numpy")
        lengths.loader(2, buckets=[6], shuffle="shards", output="numpy")
        lengths.loader(2, buckets=[6], repeat=2, output="numpy")
        lengths.loader(2, on_error="skip", output="numpy")
        lengths.loader(2, on_error="replace", output="numpy")
        small.loader(2, mixup=-1, output="numpy")
        small.loader(2, mixup="x", output="numpy")
        small.loader(2, mixup=0.2, output="numpy")
        small.loader(2, cutmix=10**10, output="numpy")
        small.loader(2, mixup=0.2, mix_probability=2, output="numpy")
        small.loader(2, mixup=0.2, cutmix=1, switch_probability=-1, output="numpy")
        small.loader(2, mixup=0.2, mix_mode="row", output="numpy")
        small.loader(2, mixup=0.2, mix_mode="elem", partner="roll", output="numpy")
        small.loader(2, mixup=0.2, partner="next", output="numpy")
        small.loader(3, mixup=0.2, mix_mode="pair", output="numpy")
        small.loader(3, mixup=0.2, mix_mode="elem", output="numpy")
        small.loader(2, mixup=0.2, num_classes=2, dtype="float32", output="numpy")
        small.loader(2, mixup=0.2, num_classes=2**40, dtype="float32", output="numpy")
        small.loader(2, label_smoothing=0.1, output="numpy")
        small.loader(2, mixup=0.2, label_smoothing=2, output="numpy")
        numbers.loader(2, mixup=0.2, output="numpy")
        feedline.files(["a.jpg"]).resize((8, 8)).loader(2, mixup=0.2, dtype="float32", output="numpy")
        numbers.loader(2, output="numpy").set_epoch(-1)
        numbers.loader(2, output="numpy").set_epoch("1")
        numbers.loader(2, output="numpy").set_epoch(2**63)
        numbers.loader(2, output="numpy").set_weights([1])
        numbers.loader(2, output="numpy", weights=[1] * 6).set_weights([1])
        numbers.loader(2, output="numpy", weights=[1] * 6).set_weights("heavy")
        numbers.loader(2, output="numpy", weights=[1] * 6).set_weights([0] * 6)
        numbers.loader(2, output="numpy", weights=[1, nan, 1, 1, 1, 1])
        numbers.loader(2, output="numpy", weights=[1, -1, 1, 1, 1, 1])
        numbers.loader(2, output="numpy", weights=[1, "x", 1, 1, 1, 1])
        numbers.loader(2, output="numpy", weights=[0] * 6)
        numbers.loader(2, output="numpy", weights=[1, 2])
        numbers.loader(2, output="numpy", weights=3)
        numbers.loader(2, output="numpy", weights=[1e308] * 6)
        numbers.loader(2, output="numpy", weights=[10**400] * 6)
        numbers.loader(2, output="numpy", weights=[1] * 6, balanced=True)
        numbers.loader(2, output="numpy", weights=[1] * 6, shuffle="shards")
        numbers.loader(2, output="numpy", balanced="yes")
        lengths.loader(2, output="numpy", weights=[1] * 6, buckets=[6])
        numbers.loader(2, output="numpy", sampler=3)
        numbers.loader(2, output="numpy", sampler=[0, 99])
        numbers.loader(2, output="numpy", sampler=[0, -1])
        numbers.loader(2, output="numpy", sampler=["a"])
        numbers.loader(2, output="numpy", sampler=[True, False])
        numbers.loader(2, output="numpy", sampler=[])
        numbers.loader(2, output="numpy", sampler=[0], shuffle=True)
        numbers.loader(2, output="numpy", sampler=[0], weights=[1] * 6)
        next(iter(numbers.loader(2, output="numpy", sampler=__import__("itertools").count())))
        len(numbers.loader(2, output="numpy", epochs=inf))
        len(numbers.loader(1, output="numpy", epochs=2**62))
        __import__("pickle").dumps(numbers.loader(2, output="numpy"))
        numbers.loader(2, output="numpy").metrics(port="x")
        numbers.loader(2, output="numpy").metrics(port=70000)
        images.filter([False] * 6)
    """),
    **functions(globals()),
}
