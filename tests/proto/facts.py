"""Prints what a Python module with a serialized descriptor says, one sorted line for each fact.

    python facts.py a2a.grpc.a2a_pb2 > facts_v03.txt       (a2a-sdk 0.3.26)
    python facts.py a2a.types.a2a_pb2 > facts_v10.txt      (a2a-sdk 1.3.0)
"""

import importlib
import sys

from google.protobuf import descriptor_pb2

F = descriptor_pb2.FieldDescriptorProto


def type_of(field):
    if field.type_name:
        return field.type_name.lstrip(".")
    return F.Type.Name(field.type).removeprefix("TYPE_").lower()


def label_of(message, field):
    if field.label == F.LABEL_REPEATED:
        return "repeated"
    if field.proto3_optional:
        return "optional"
    if field.HasField("oneof_index"):
        return "oneof " + message.oneof_decl[field.oneof_index].name
    return "single"


def facts_of_message(name, message):
    for field in message.field:
        yield f"{name}.{field.name} = {field.number} {type_of(field)} {label_of(message, field)}"
    for inner in message.nested_type:
        if inner.options.map_entry:
            yield f"{name}.{inner.name} is a map"
        yield from facts_of_message(f"{name}.{inner.name}", inner)
    for inner in message.enum_type:
        yield from facts_of_enum(f"{name}.{inner.name}", inner)


def facts_of_enum(name, enum):
    for value in enum.value:
        yield f"{name}.{value.name} = {value.number}"


def facts_of_service(name, service):
    for method in service.method:
        stream = ["", "stream "]
        asked = stream[method.client_streaming] + method.input_type.lstrip(".")
        answered = stream[method.server_streaming] + method.output_type.lstrip(".")
        yield f"{name}/{method.name} = {asked} -> {answered}"


def facts_of_file(file):
    for message in file.message_type:
        yield from facts_of_message(f"{file.package}.{message.name}", message)
    for enum in file.enum_type:
        yield from facts_of_enum(f"{file.package}.{enum.name}", enum)
    for service in file.service:
        yield from facts_of_service(f"{file.package}.{service.name}", service)


if __name__ == "__main__":
    module = importlib.import_module(sys.argv[1])
    file = descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    print("\n".join(sorted(facts_of_file(file))))
