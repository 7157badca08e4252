# SPDX-License-Identifier: Apache-2.0
"""The modules whose functions the probe wraps, and the probe's functions that install the hooks.

sitecustomize imports this module by name at the start of every profiled Python process, with its folder on the path, so
it imports nothing. hooks.py uses this module too.
"""

# Importing one of these loads the probe; the other modules are not used without one of these.
PRIMARY = {
    "torch.utils.data.dataloader": "loop_hooks.patch_torch_loader",
    "feedline.loader.loader": "loop_hooks.patch_own_loader",
}
SECONDARY = {
    "torch.utils.data._utils.fetch": "fetch_hooks.patch_torch_fetch",
    "torch.utils.data._utils.worker": "worker_hooks.patch_torch_worker",
    "torch.utils.data._utils.pin_memory": "loop_hooks.patch_pin_memory",
    "torchvision.transforms.transforms": "sample_hooks.patch_compose",
    "torchvision.transforms.v2._container": "sample_hooks.patch_compose_v2",
    "torchvision.io.image": "sample_hooks.patch_torchvision_io",
    "PIL.Image": "sample_hooks.patch_pillow_open",
    "PIL.ImageFile": "sample_hooks.patch_pillow_file",
    "PIL.TiffImagePlugin": "sample_hooks.patch_pillow_tiff",
    "PIL.WebPImagePlugin": "sample_hooks.patch_pillow_webp",
    "cv2": "sample_hooks.patch_opencv",
    "feedline.torch_loader.data_loader": "loop_hooks.patch_drop_in",
    "feedline.torch_loader.fetching.fetch": "fetch_hooks.patch_drop_in_fetch",
    "feedline.torch_loader.native.native_iterator": "loop_hooks.patch_native_iterator",
    "feedline.torch_loader.native.arrays": "fetch_hooks.patch_gather",
    "feedline.torch_loader.native.prefix": "sample_hooks.patch_native_prefix",
    "multiprocessing.pool": "pool_hooks.patch_multiprocessing_pool",
    "concurrent.futures.process": "pool_hooks.patch_process_pool",
    "concurrent.futures.thread": "pool_hooks.patch_thread_pool",
}
