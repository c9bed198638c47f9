/// The header fields of tus 1.0 (<https://tus.io/protocols/resumable-upload>), and our additions.
package enum TusField {
  package static let resumable = "Tus-Resumable"

  package static let version = "Tus-Version"

  package static let `extension` = "Tus-Extension"

  package static let maxSize = "Tus-Max-Size"

  package static let checksumAlgorithm = "Tus-Checksum-Algorithm"

  package static let offset = "Upload-Offset"

  package static let length = "Upload-Length"

  /// Facts about a new upload; see ``UploadMetadata``.
  package static let metadata = "Upload-Metadata"

  /// The checksum of a part; see ``UploadChecksum``.
  package static let checksum = "Upload-Checksum"

  /// The expiry of an unfinished upload (RFC 9110, section 5.6.7).
  package static let expires = "Upload-Expires"

  package static let partType = "application/offset+octet-stream"
}

package enum TusVersion {
  package static let current = "1.0.0"
}
