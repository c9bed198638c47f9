internal import StoreFiles

/// How much of its room a sender and the inbox have taken.
package struct InboxRoom: Sendable, Hashable {
  /// The most bytes of the sender; 0 where it is not known.
  package var quota: Int64

  /// How many bytes count against that.
  package var used: Int64

  /// How many bytes count in the whole inbox.
  package var totalUsed: Int64

  /// What is taken.
  package init(quota: Int64, used: Int64, totalUsed: Int64) {
    self.quota = quota
    self.used = used
    self.totalUsed = totalUsed
  }

  /// How many more bytes there may be, where the inbox has so many in all; 0 or less where it is full.
  package func left(of totalBytes: Int64) -> Int64 { min(quota - used, totalBytes - totalUsed) }

  /// Whether an upload may begin that is not known yet.
  ///
  /// - Parameter open: how many uploads of its sender are not over.
  package func admission(of upload: InboxUpload, open: Int, _ limits: InboxLimits) -> InboxAdmission {
    guard open < limits.openUploads else { return .tooMany }
    guard upload.length <= quota - used else { return .senderFull }
    return upload.length <= limits.totalBytes - totalUsed ? .begun : .full
  }
}
