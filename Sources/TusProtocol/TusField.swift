/// The names of the header fields of tus 1.0 (<https://tus.io/protocols/resumable-upload>), and of what is added to it here.
public enum TusField {
  /// The version that a message is of.
  public static let resumable = "Tus-Resumable"

  /// The versions that a server knows.
  public static let version = "Tus-Version"

  /// The extensions that a server knows.
  public static let `extension` = "Tus-Extension"

  /// The most bytes that a server takes for one upload.
  public static let maxSize = "Tus-Max-Size"

  /// The algorithms that a server knows for the sums of parts.
  public static let checksumAlgorithm = "Tus-Checksum-Algorithm"

  /// How many bytes of an upload are there.
  public static let offset = "Upload-Offset"

  /// How many bytes an upload has in all.
  public static let length = "Upload-Length"

  /// What is said about an upload when it is created; see ``UploadMetadata``.
  public static let metadata = "Upload-Metadata"

  /// The sum of one part; see ``UploadChecksum``.
  public static let checksum = "Upload-Checksum"

  /// Until when an unfinished upload is kept (RFC 9110, section 5.6.7).
  public static let expires = "Upload-Expires"

  /// The type of the body of a part.
  public static let partType = "application/offset+octet-stream"
}

/// The version of the protocol that is spoken here.
public enum TusVersion {
  /// `1.0.0`.
  public static let current = "1.0.0"
}
