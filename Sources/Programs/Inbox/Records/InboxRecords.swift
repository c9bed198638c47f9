package import StoreFiles

/// What the inbox knows: senders, uploads, bundles and the damage that was seen in them.
///
/// Each call is done wholly or not at all, and may come from any thread. Nothing in it is of one kind of database, so that
/// a server's can take the place of the file.
package protocol InboxRecords: Sendable {
  // MARK: Senders

  /// Notes a sender with the SHA-256 of its token.
  ///
  /// - Throws: `sender-exists` where the name is taken, by one whose token was revoked too.
  func add(_ sender: InboxSender, tokenSum: [UInt8]) throws(InboxError)

  /// All senders, by name.
  func senders() throws(InboxError) -> [InboxSender]

  /// The sums of all tokens that are good, with the senders that they are of.
  func tokens() throws(InboxError) -> [(sum: [UInt8], sender: InboxSender)]

  /// Revokes a sender's token.
  ///
  /// - Throws: `no-such-sender`.
  func revokeSender(_ name: String, at date: Timestamp) throws(InboxError)

  /// How many bytes are kept or announced of each sender, by name: what was received, and what was placed of it.
  func usage() throws(InboxError) -> [String: Int64]

  // MARK: Uploads

  /// Begins an upload, if the limits and the sender's quota allow it.
  func admit(_ upload: InboxUpload, quota: Int64, limits: InboxLimits) throws(InboxError) -> InboxAdmission

  /// An upload, whatever became of it; nil where there never was one.
  func upload(_ id: String) throws(InboxError) -> InboxUpload?

  /// Notes how many bytes of an upload are on the disk, and until when it is kept.
  func advance(_ id: String, to offset: Int64, expires: Timestamp) throws(InboxError)

  /// Notes that an upload is no more, where it is not over.
  ///
  /// - Returns: whether it was not over.
  @discardableResult
  func drop(_ id: String) throws(InboxError) -> Bool

  /// The uploads that are not over.
  func openUploads() throws(InboxError) -> [InboxUpload]

  /// Notes that an upload is a bundle now.
  ///
  /// - Returns: the bundle; an earlier one where the same sender has sent the same file before, and that which it became where
  ///   that was noted already.
  /// - Throws: `not-in-inbox` where the upload was dropped or its bundle discarded; `inbox-records`.
  func finish(_ id: String, as bundle: InboxBundle) throws(InboxError) -> InboxBundle

  /// Forgets the uploads that have been over for long, and the oldest of a sender who has very many.
  func pruneUploads(at date: Timestamp) throws(InboxError)

  // MARK: Room

  /// How many more bytes a sender's quota and the inbox leave; 0 or less where they are full.
  func room(of sender: String, totalBytes: Int64) throws(InboxError) -> Int64

  /// Notes how many bytes are placed of a bundle besides the file that was received, if quota and inbox leave them.
  ///
  /// - Parameter totalBytes: the most bytes of the inbox; nil where it is noted in any case.
  /// - Returns: false where they do not, and nothing was noted.
  func place(_ bytes: Int64, of bundle: String, totalBytes: Int64?) throws(InboxError) -> Bool

  /// How many bytes are placed of a bundle; nil where that was never noted.
  func placed(of bundle: String) throws(InboxError) -> Int64?

  // MARK: Bundles

  /// The identifiers of all bundles, and whether it was noted what is placed of each.
  func bundleIDs() throws(InboxError) -> [String: Bool]

  /// The identifiers of the bundles that are so far, in the order in which they arrived.
  func bundleIDs(in state: InboxBundle.State) throws(InboxError) -> [String]

  /// A bundle; nil where there is none.
  func bundle(_ id: String) throws(InboxError) -> InboxBundle?

  /// A bundle with its jobs, both as of one moment; nil where there is none.
  func entry(_ id: String) throws(InboxError) -> InboxEntry?

  /// Bundles with their jobs as of one moment, newest first, without their files and without the account of their salvage.
  ///
  /// - Parameters:
  ///   - words: only those that have this text in them, whatever the case of its letters; all if empty.
  ///   - group: only those with this damage.
  ///   - state: only those that are so far.
  func entries(
    words: String, group: String?, state: InboxBundle.State?, limit: Int
  ) throws(InboxError) -> [InboxEntry]

  /// How many bundles there are.
  func bundleCount() throws(InboxError) -> Int

  /// How many bundles there are in each state.
  ///
  /// - Throws: `inbox-records`.
  func bundleCounts() throws(InboxError) -> [InboxBundle.State: Int]

  /// Notes what became of a bundle; nothing is done where it is gone.
  func save(_ bundle: InboxBundle) throws(InboxError)

  /// Changes a bundle as it is then, which no other call does meanwhile; nothing is done where it is gone.
  func change(_ id: String, _ change: (inout InboxBundle) -> Void) throws(InboxError)

  /// Forgets a bundle, and the uploads that became it.
  func remove(_ bundle: String) throws(InboxError)

  // MARK: Damage

  /// Notes that a damage was seen; once for each store.
  func note(_ sighting: InboxSighting) throws(InboxError)

  /// The damage that was seen, the latest first.
  func groups(limit: Int) throws(InboxError) -> [InboxGroup]

  /// The damage of a fingerprint; nil where it was never seen.
  func group(_ id: String) throws(InboxError) -> InboxGroup?
}

extension InboxRecords {
  /// Adds a sender.
  ///
  /// - Returns: the token, which is not kept and cannot be shown again.
  /// - Throws: `sender-exists`, `sender-name`, `inbox-records`.
  package func addSender(_ name: String, quota: Int64, at date: Timestamp) throws(InboxError) -> SenderToken {
    let token = SenderToken.random()
    try add(InboxSender(name: name, quota: quota, created: date), tokenSum: token.sum)
    return token
  }
}
