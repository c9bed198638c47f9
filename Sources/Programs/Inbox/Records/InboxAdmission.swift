internal import StoreFiles

/// Whether an upload may begin.
package enum InboxAdmission: Sendable, Hashable {
  /// It may, and is noted.
  case begun

  /// The sender has sent the same file already, whole.
  case known(InboxUpload)

  /// The sender has too many unfinished uploads.
  case tooMany

  /// The sender has no room left.
  case senderFull

  /// The inbox has no room left.
  case full
}

/// How much the inbox takes.
package struct InboxLimits: Sendable, Hashable {
  /// The most bytes of one bundle.
  package var bundleBytes: Int64

  /// The most bytes of all bundles, unfinished uploads included.
  package var totalBytes: Int64

  /// The most unfinished uploads of one sender.
  package var openUploads: Int

  /// For how many seconds an unfinished upload is kept when nothing more of it comes.
  package var uploadSeconds: Int64

  /// How many bytes of the disk are left free.
  package var freeBytes: Int64

  /// Limits.
  package init(
    bundleBytes: Int64 = 4 << 30, totalBytes: Int64 = 100 << 30, openUploads: Int = 16,
    uploadSeconds: Int64 = 7 * 86_400, freeBytes: Int64 = 256 << 20
  ) {
    self.bundleBytes = bundleBytes
    self.totalBytes = totalBytes
    self.openUploads = openUploads
    self.uploadSeconds = uploadSeconds
    self.freeBytes = freeBytes
  }
}
