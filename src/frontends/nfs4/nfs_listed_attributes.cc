#include "frontends/nfs4/nfs_listed_attributes.h"

namespace millrace {

NfsListedAttributes::Form NfsListedAttributes::make_form(const NfsNode& node) const {
  XdrWriter whole;
  attributes_.write(whole, wanted_, node);
  const ByteView bytes = whole.written();
  Form form{.exported = node.place.exported, .bytes = {bytes.begin(), bytes.end()}, .own = {}};
  const NfsBitmap given = attributes_.given(wanted_);
  XdrWriter values;
  std::vector<OwnValue> own;
  given.for_each([&](NfsAttribute attribute) {
    std::array<std::byte, NfsAttributeWriter::kOwnBytesMax> value;
    if (attributes_.store_own(value.data(), attribute, node) > 0)
      own.push_back({attribute, values.written().size()});
    attributes_.write_value(values, attribute, node);
  });
  // The mask and the length stand before the values.
  const std::size_t head = bytes.size() - values.written().size();
  for (const OwnValue& value : own)
    form.own.push_back({value.attribute, head + value.place});
  return form;
}

void NfsListedAttributes::write_name(XdrWriter& writer, const NfsNode& node) const {
  const NfsBitmap given = attributes_.given(wanted_) & kOfNames;
  XdrWriter values;
  given.for_each([&](NfsAttribute attribute) {
    if (attribute == NfsAttribute::kRdattrError) {
      values.enumeration(NfsStatus::kDelay);
    } else {
      attributes_.write_value(values, attribute, node);
    }
  });
  given.write(writer);
  writer.opaque(values.written());
}

void NfsListedAttributes::write(XdrWriter& writer, const NfsNode& node) {
  if (is_partial(node)) return write_name(writer, node);
  Form& form = forms_[static_cast<std::size_t>(node.attributes.kind)];
  if (form.bytes.empty() || form.exported != node.place.exported) form = make_form(node);
  for (const OwnValue& value : form.own)
    attributes_.store_own(form.bytes.data() + value.place, value.attribute, node);
  writer.fixed(form.bytes);
}

}  // namespace millrace
