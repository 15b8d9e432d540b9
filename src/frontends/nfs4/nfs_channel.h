#pragma once

#include "frontends/nfs4/nfs_types.h"
#include "frontends/nfs4/xdr_reader.h"
#include "frontends/nfs4/xdr_writer.h"

namespace millrace {

// channel_attrs4.
NfsChannelAttributes read_nfs_channel(XdrReader& reader);
void write_nfs_channel(XdrWriter& writer, const NfsChannelAttributes& channel);

// How a client wants callbacks to be sent. Ours always have AUTH_SYS credentials of the superuser,
// which Linux takes, whatever it says here.
void skip_nfs_callback_security(XdrReader& reader);

}  // namespace millrace
