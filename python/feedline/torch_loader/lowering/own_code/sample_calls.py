# SPDX-License-Identifier: Apache-2.0
"""Analyses the calls in a `__getitem__` without running it: functions that look up values, images, and transforms."""

from __future__ import annotations

import ast
import sys
import types
from dataclasses import replace
from typing import Any

from . import plain_values
from .sample_expressions import name_of
from .sample_operators import Operators
from .sample_values import Known, Made, Opened, Picture, Plain, Refused, Step, Value, has_image

_MODES = ("RGB", "L")


class Calls(Operators):
    def call_function(
        self, node: ast.AST, function: types.FunctionType, args: list[Value], named: dict[str, Value]
    ) -> Value:
        """Returns the result of a user's function, whose body is analysed as well."""
        raise NotImplementedError

    def _call(self, node: ast.Call) -> Value:
        if any(isinstance(arg, ast.Starred) for arg in node.args) or any(word.arg is None for word in node.keywords):
            raise Refused(node, "calls with * or ** are not supported")
        if isinstance(node.func, ast.Attribute):
            base = self.value(node.func.value)
            args, named = self._arguments(node)
            if isinstance(base, Picture):
                return self._image_method(node, base, args, named)
            if isinstance(base, Known) and base.value is self.dataset:
                return self._own_call(node, args, named)
            if not isinstance(base, Known) or plain_values.is_plain(base.value):
                return self._plain_method(node, base, args, named)
            function = self.known_attribute(node.func, base)
        else:
            function = self.value(node.func)
            args, named = self._arguments(node)
        if not isinstance(function, Known):
            raise Refused(node, "the called function depends on the sample")
        return self._known_call(node, function, args, named)

    def _arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
        return [self.value(arg) for arg in node.args], {str(word.arg): self.value(word.value) for word in node.keywords}

    def _own_call(self, node: ast.Call, args: list[Value], named: dict[str, Value]) -> Value:
        assert isinstance(node.func, ast.Attribute)
        found = self.own_attribute(node.func)
        is_method = node.func.attr not in vars(self.dataset) and isinstance(found, types.FunctionType)
        if not is_method:
            return self._known_call(node, Known(found, ("self", node.func.attr)), args, named)
        static = any(isinstance(vars(base).get(node.func.attr), staticmethod) for base in type(self.dataset).__mro__)
        first = [] if static else [Known(self.dataset)]
        return self.call_function(node, found, [*first, *args], named)

    def _plain_method(self, node: ast.Call, base: Value, args: list[Value], named: dict[str, Value]) -> Value:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if not plain_values.is_pure_method(name) or not {"inplace", "out"}.isdisjoint(named):
            raise Refused(node, f".{name}() may change something")
        plain = self.as_plain(node, base)
        return self._plain_call(node, ast.Attribute(plain.code, name, ast.Load()), [base, *args], args, named)

    def _plain_call(
        self, node: ast.Call, function: ast.expr, values: list[Value], args: list[Value], named: dict[str, Value]
    ) -> Plain | Known:
        plains = [self.as_plain(node, arg) for arg in args]
        words = [(name, self.as_plain(node, value)) for name, value in named.items()]
        code = ast.Call(function, [p.code for p in plains], [ast.keyword(name, p.code) for name, p in words])
        values = [*values, *named.values()]
        if values and all(isinstance(value, Known) for value in values):
            found = self.run(node, code)
            if plain_values.is_simple(found) or type(found) is list:
                return Known(found)
        return Plain(code, is_index=any(isinstance(value, Plain) and value.is_index for value in values))

    def _known_call(self, node: ast.Call, function: Known, args: list[Value], named: dict[str, Value]) -> Value:
        called = function.value
        opened = self._opening(node, called, args, named)
        if opened is not None:
            return opened
        if called is dict and not args and any(map(has_image, named.values())):
            return Made(dict, list(named.values()), list(named))
        if plain_values.is_pure(called):
            return self._pure_call(node, called, args, named)
        if _is_transform_class(called):
            args, named = [_known(arg) for arg in args], {name: _known(value) for name, value in named.items()}
        if _is_transform_class(called) and all(isinstance(v, Known) for v in (*args, *named.values())):
            try:
                return Known(called(*(v.value for v in args), **{name: v.value for name, v in named.items()}))
            except Exception as error:
                raise Refused(node, f"{type(error).__name__}: {error}") from None
        images = [value for value in (*args, *named.values()) if has_image(value)]
        given = function.slot[:1] == ("self",)  # an attribute, whose function the user may choose
        if isinstance(called, types.FunctionType) and not _is_torchvision(called):
            written, names = len(self.writer.statements), dict(self.scope.names)
            arrays = len(self.writer.arrays)
            try:
                return self.call_function(node, called, args, named)
            except Refused:
                if not given:
                    raise
                del self.writer.statements[written:], self.writer.arrays[arrays:]
                self.scope.names = names
        if len(args) == 1 and not named and isinstance(args[0], Picture):
            return self._transformed(node, args[0], function)
        if len(images) > 1:
            raise Refused(node, f"{name_of(called)}() transforms several images together")
        if images:
            raise Refused(node, f"{name_of(called)}() uses the image outside of its transforms")
        if not callable(called) or not given or self.loops:
            raise Refused(node, f"{name_of(called)}() may do anything")
        self.writer.called.append(function.slot)
        plains = [self.as_plain(node, arg) for arg in args]
        words = [ast.keyword(name, self.as_plain(node, value).code) for name, value in named.items()]
        return Plain(ast.Call(self.writer.constant(called), [p.code for p in plains], words))

    def _pure_call(self, node: ast.Call, called: Any, args: list[Value], named: dict[str, Value]) -> Value:
        if called is len and len(args) == 1 and isinstance(args[0], Known) and args[0].value is self.dataset:
            length = getattr(type(self.dataset), "__len__", None)
            if not isinstance(length, types.FunctionType):
                raise Refused(node, "len(self) is not supported")
            return self.call_function(node, length, args, {})
        if (
            any(called is array for array in _arrays())
            and args
            and isinstance(args[0], Picture)
            and args[0].code is not None
        ):
            return self._array(node, called, args, named)
        if any(map(has_image, (*args, *named.values()))):
            raise Refused(node, f"{name_of(called)}() uses the image outside of its transforms")
        made = self._plain_call(node, self.writer.constant(called), list(args), args, named)
        if isinstance(made, Plain):
            return replace(made, checked=True, fresh=plain_values.makes_fresh(called))
        return made

    # -- images

    def _array(self, node: ast.Call, called: Any, args: list[Value], named: dict[str, Value]) -> Value:
        """Returns the call to np.array(image), such as that for a mask, as code that reads the image with Pillow."""
        image = args[0]
        others = [self.as_plain(node, arg).code for arg in args[1:]]
        words = [ast.keyword(name, self.as_plain(node, value).code) for name, value in named.items()]
        self.writer.arrays.append((node, name_of(called)))
        code = ast.Call(self.writer.constant(called), [image.code, *others], words)
        return self.stored(Plain(code, checked=True, fresh=called is _arrays()[0]))

    def stored(self, value: Value) -> Value:
        """Returns `value` as a variable that is computed at this point."""
        raise NotImplementedError

    def _opening(self, node: ast.Call, called: Any, args: list[Value], named: dict[str, Value]) -> Value | None:
        pillow = sys.modules.get("PIL.Image")
        if called is open:
            mode = args[1] if len(args) == 2 else named.get("mode")
            if not args or not isinstance(mode, Known) or mode.value != "rb" or len(args) + len(named) != 2:
                raise Refused(node, 'only open(path, "rb") is supported')
            return Opened(self.as_plain(node, args[0]))
        if pillow is not None and called is pillow.open:
            if len(args) != 1 or named:
                raise Refused(node, "Image.open with arguments other than the path is not supported")
            path = args[0].path if isinstance(args[0], Opened) else self.stored(self.as_plain(node, args[0]))
            return Picture(path, ast.Call(self.writer.constant(called), [path.code], []))
        folder = sys.modules.get("torchvision.datasets.folder")
        if folder is not None and called in (folder.default_loader, folder.pil_loader) and len(args) == 1 and not named:
            backend = sys.modules["torchvision"].get_image_backend()
            if called is folder.default_loader and backend != "PIL":
                raise Refused(node, f"torchvision's image backend is {backend}")
            path = self.stored(self.as_plain(node, args[0]))
            return Picture(path, ast.Call(self.writer.constant(called), [path.code], []), "RGB")
        turning = getattr(sys.modules.get("PIL.ImageOps"), "exif_transpose", None)
        if turning is not None and called is turning and len(args) == 1 and not named and isinstance(args[0], Picture):
            code = None if args[0].code is None else ast.Call(self.writer.constant(called), [args[0].code], [])
            if args[0].steps or args[0].turned:
                return self._unread(Refused(node, "exif_transpose after a transform is not supported"), args[0], code)
            return replace(args[0], turned=True, block=0, code=code)
        return None

    def _unread(self, refused: Refused, image: Picture, code: ast.expr | None) -> Picture:
        """Returns an image that the engine cannot read, which the class may convert to an array; or raises `refused`
        if there is no code that reads the image.
        """
        if code is None:
            raise refused
        return replace(image, code=code, block=0, refused=image.refused or refused.why)

    def _image_method(self, node: ast.Call, image: Picture, args: list[Value], named: dict[str, Value]) -> Value:
        assert isinstance(node.func, ast.Attribute)
        if node.func.attr not in ("convert", "resize") or image.code is None:
            return self._read_method(node, image, args, named)
        function = ast.Attribute(image.code, node.func.attr, ast.Load())
        words = [ast.keyword(name, self._argument(node, value)) for name, value in named.items()]
        code = ast.Call(function, [self._argument(node, arg) for arg in args], words)
        try:
            made = self._read_method(node, image, args, named)
        except Refused as refused:
            return self._unread(refused, image, code)
        return replace(made, code=code)

    def _argument(self, node: ast.AST, value: Value) -> ast.expr:
        """Returns the code for an argument of an image's method, such as Image.NEAREST."""
        return self.writer.constant(value.value) if isinstance(value, Known) else self.as_plain(node, value).code

    def _read_method(self, node: ast.Call, image: Picture, args: list[Value], named: dict[str, Value]) -> Value:
        """Returns the result of an image's method that the engine supports."""
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if name == "convert" and len(args) + len(named) == 1 and not image.steps:
            mode = args[0] if args else named.get("mode")
            if isinstance(mode, Known) and mode.value in _MODES and image.mode in ("", mode.value):
                return replace(image, mode=mode.value, block=0)
        if name in ("load", "copy") and not args and not named:
            return replace(image, block=0) if name == "copy" else Known(None)
        if name == "resize":
            return self._resized(node, image, args, named)
        raise Refused(node, f"image.{name}() is not supported here; put it into the transform")

    def _resized(self, node: ast.Call, image: Picture, args: list[Value], named: dict[str, Value]) -> Value:
        """Converts Image.resize to torchvision's Resize, which calls Image.resize."""
        transforms: Any = sys.modules.get("torchvision.transforms")
        values = dict(zip(("size", "resample"), args, strict=False)) | named
        size, filter_ = values.pop("size", None), values.pop("resample", Known(3))  # 3: bicubic, Pillow's default
        size = _known(size)
        usable = transforms is not None and not values and isinstance(size, Known) and isinstance(filter_, Known)
        if not usable or not image.mode or len(args) > 2 or len(tuple(size.value)) != 2:
            raise Refused(node, "image.resize() is not supported here; put Resize into the transform")
        modes = transforms.InterpolationMode
        names = {0: modes.NEAREST, 2: modes.BILINEAR, 3: modes.BICUBIC}
        if filter_.value is not None and int(filter_.value) not in names:
            raise Refused(node, "this filter of image.resize() is not supported")
        mode = names[3 if filter_.value is None else int(filter_.value)]
        width, height = size.value
        return self._transformed(node, image, Known(transforms.Resize((height, width), mode)))

    def _transformed(self, node: ast.Call, image: Picture, function: Known) -> Picture:
        if image.refused:
            raise Refused(None, image.refused)
        functional = [sys.modules.get(f"torchvision.transforms{v}.functional") for v in ("", ".v2")]
        if _is_torchvision(function.value) and isinstance(function.value, types.FunctionType):
            transforms = sys.modules.get("torchvision.transforms")
            if transforms is None or function.value is not getattr(functional[0], "to_tensor", None):
                raise Refused(node, f"{name_of(function.value)}() is not supported here; put it into the transform")
            function = Known(transforms.ToTensor())
        if not callable(function.value):
            raise Refused(node, f"{name_of(function.value)} is not a function")
        self.transformed += 1
        step = Step(function.value, function.slot, self.transformed)
        return replace(image, steps=(*image.steps, step), block=0, code=None)


def _known(value: Value) -> Value:
    """Returns a list or tuple of constants as a single constant."""
    if not isinstance(value, Made) or value.kind is dict:
        return value
    items = [_known(item) for item in value.items]
    return Known(value.kind(item.value for item in items)) if all(isinstance(i, Known) for i in items) else value


def _arrays() -> tuple[Any, ...]:
    """Returns the functions that convert an image to an array."""
    numpy: Any = sys.modules.get("numpy")
    return () if numpy is None else (numpy.array, numpy.asarray)


def _is_transform_class(called: Any) -> bool:
    return isinstance(called, type) and called.__module__.startswith("torchvision.transforms")


def _is_torchvision(called: Any) -> bool:
    return str(getattr(called, "__module__", "")).startswith("torchvision.")
