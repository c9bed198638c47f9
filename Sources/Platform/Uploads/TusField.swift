/// The names of the header fields of tus 1.0 (<https://tus.io/protocols/resumable-upload>), and of what is added to it here.
package enum TusField {
  /// The version that a message is of.
  package static let resumable = "Tus-Resumable"

  /// The versions that a server knows.
  package static let version = "Tus-Version"

  /// The extensions that a server knows.
  package static let `extension` = "Tus-Extension"

  /// The most bytes that a server takes for one upload.
  package static let maxSize = "Tus-Max-Size"

  /// The algorithms that a server knows for the sums of parts.
  package static let checksumAlgorithm = "Tus-Checksum-Algorithm"

  /// How many bytes of an upload are there.
  package static let offset = "Upload-Offset"

  /// How many bytes an upload has in all.
  package static let length = "Upload-Length"

  /// What is said about an upload when it is created; see ``UploadMetadata``.
  package static let metadata = "Upload-Metadata"

  /// The sum of one part; see ``UploadChecksum``.
  package static let checksum = "Upload-Checksum"

  /// Until when an unfinished upload is kept (RFC 9110, section 5.6.7).
  package static let expires = "Upload-Expires"

  /// The type of the body of a part.
  package static let partType = "application/offset+octet-stream"
}

/// The version of the protocol that is spoken here.
package enum TusVersion {
  /// `1.0.0`.
  package static let current = "1.0.0"
}
