package import Platform

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

  func senders() throws(InboxError) -> [InboxSender]

  /// Revokes a sender's token.
  ///
  /// - Throws: `no-such-sender`.
  func revokeSender(_ name: String, at date: Timestamp) throws(InboxError)

  /// Senders by name, with what is kept of each; only those behind a name where one is given.
  func senders(after name: String?, limit: Int) throws(InboxError) -> [InboxSenderUsage]

  /// The sender of a token by its SHA-256, if the token is good; nil for none.
  func sender(withTokenSum sum: [UInt8]) throws(InboxError) -> (sum: [UInt8], sender: InboxSender)?

  /// How many bytes are kept or announced of each sender, by name: what was received, and what was placed of it.
  func usage() throws(InboxError) -> [String: Int64]

  /// How many bytes are kept or announced of all senders.
  func usedBytes() throws(InboxError) -> Int64

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

  /// The uploads that are not over, in the order in which they were begun; at most so many where a limit is given.
  func openUploads(limit: Int?) throws(InboxError) -> [InboxUpload]

  /// The uploads that are not over, by their identifiers; only those behind one where it is given.
  func openUploads(after id: String?, limit: Int) throws(InboxError) -> [InboxUpload]

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

  /// Those of these identifiers that bundles have.
  func known(_ ids: [String]) throws(InboxError) -> Set<String>

  /// A bundle; nil where there is none.
  func bundle(_ id: String) throws(InboxError) -> InboxBundle?

  /// A bundle with its jobs, both as of one moment; nil where there is none.
  func entry(_ id: String) throws(InboxError) -> InboxEntry?

  /// Bundles with their jobs as of one moment, newest first, without their files and without the account of their salvage.
  ///
  /// - Parameter key: only those behind it; all if nil.
  func entries(_ filter: InboxFilter, after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxEntry>

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

  // MARK: Retention

  /// Bundles as the rules of retention see them, oldest first; only those behind a key where one is given.
  ///
  /// - Parameter newer: up to how many newer bundles of the same damage are counted.
  func retentionCandidates(
    after key: InboxKey?, newer: Int, limit: Int
  ) throws(InboxError) -> [RetentionCandidate]

  /// Forgets a bundle, its jobs and its uploads, and keeps a record of that, in one step.
  ///
  /// No other bundle is removed between the look at this one and the step. What the record says of the bundle is what it is then.
  ///
  /// - Parameters:
  ///   - states: a bundle that has a job in one of these is left alone; with `waiting` one that waits to be opened too.
  ///   - newer: up to how many newer bundles of the same damage are counted.
  ///   - mayGo: whether the bundle as it is now is still to be removed; may be asked more than once.
  /// - Returns: what was recorded; nil where the bundle is left alone, or is gone already.
  func remove(
    _ removal: InboxRemoval, sparing states: Set<InboxJob.State>, newer: Int, where mayGo: (RetentionCandidate) -> Bool
  ) throws(InboxError) -> InboxRemoval?

  /// The bundles that were removed and whose files may be there still.
  func removalsNotCleared() throws(InboxError) -> [String]

  /// Notes that the files of a removed bundle are gone.
  func noteCleared(_ bundle: String) throws(InboxError)

  /// The bundles that were removed, the latest first; only those behind the one of a number where it is given.
  func removals(after number: Int64?, limit: Int) throws(InboxError) -> [InboxRemoval]

  // MARK: Batches

  /// Notes what a salvage of a bundle gave, for the batches too that wait for it by the version that made it; doing it again
  /// changes nothing in these.
  ///
  /// - Parameter before: what an earlier version of this software had recovered; nil where that is not known.
  func noteSalvage(
    of bundle: String, before: SalvageCount?, after: SalvageCount
  ) throws(InboxError)

  /// How many bundles of a damage were salvaged last by an earlier version than this one.
  func salvagedEarlier(of group: String, than version: String) throws(InboxError) -> Int

  /// Notes a batch of these bundles, at most ``SalvageBatch/maximumBundles``, the oldest first, and begins their salvages anew,
  /// in one step.
  ///
  /// - Returns: nil where there are none.
  /// - Throws: `inbox-not-now` where an earlier batch of the damage is not over.
  func beginBatch(of group: String, version: String, at date: Timestamp) throws(InboxError) -> SalvageBatch?

  /// A batch as it is now; nil where there is none.
  func batch(_ number: Int64) throws(InboxError) -> SalvageBatch?

  /// The batches of a damage, or of all, the latest first, without what came of them; only those behind the one of a number
  /// where it is given.
  func batches(of group: String?, after number: Int64?, limit: Int) throws(InboxError) -> [SalvageBatch]

  /// The bundles of a batch, by identifier.
  ///
  /// - Parameters:
  ///   - change: only those with this change.
  ///   - bundle: only those behind this one.
  func items(
    of batch: Int64, change: SalvageChange?, after bundle: String?, limit: Int
  ) throws(InboxError) -> [SalvageBatchItem]

  // MARK: Damage

  /// Notes that a damage was seen; once for each store.
  func note(_ sighting: InboxSighting) throws(InboxError)

  /// The damage that was seen, the latest first; only what is behind a key where one is given.
  func groups(after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxGroup>

  /// The damage of fingerprints, in the order of their identifiers here; what was never seen is left out.
  func groups(_ ids: [String]) throws(InboxError) -> [InboxGroup]

  /// The fingerprints that share some of these marks, those first whose marks in common weigh most.
  func fingerprints(sharing bands: [DamageFingerprint.Band], limit: Int) throws(InboxError) -> [DamageFingerprint]
}

extension InboxRecords {
  /// The first of these bundles, newest first.
  package func entries(
    words: String, group: String?, state: InboxBundle.State?, limit: Int
  ) throws(InboxError) -> [InboxEntry] {
    try entries(InboxFilter(words: words, group: group, state: state), after: nil, limit: limit).items
  }

  /// The damage that was seen last.
  package func groups(limit: Int) throws(InboxError) -> [InboxGroup] { try groups(after: nil, limit: limit).items }

  /// The damage of a fingerprint; nil where it was never seen.
  package func group(_ id: String) throws(InboxError) -> InboxGroup? { try groups([id]).first }

  /// The uploads that are not over.
  package func openUploads() throws(InboxError) -> [InboxUpload] { try openUploads(limit: nil) }

  /// Does something to each upload that is not over, of which some are read at a time.
  func eachOpenUpload(_ body: (InboxUpload) throws -> Void) throws {
    var last: String?
    while true {
      let uploads = try openUploads(after: last, limit: InboxUpload.readAtOnce)
      for upload in uploads { try body(upload) }
      guard uploads.count == InboxUpload.readAtOnce else { return }
      last = uploads.last?.id
    }
  }

  /// Forgets a bundle whatever the rules of retention say, its jobs and its uploads, and keeps a record of that, in one step.
  ///
  /// - Parameter states: a bundle that has a job in one of these is left alone; with `waiting` one that waits to be opened too.
  /// - Returns: false where it is left alone, or is gone already.
  package func remove(_ removal: InboxRemoval, sparing states: Set<InboxJob.State>) throws(InboxError) -> Bool {
    try remove(removal, sparing: states, newer: 0) { _ in true } != nil
  }

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

/// A bundle and the work on it, as they were at one moment.
package struct InboxEntry: Sendable, Hashable {
  /// The bundle.
  package var bundle: InboxBundle

  /// Its jobs, in the order in which they are done.
  package var jobs: [InboxJob]

  /// A bundle and its jobs.
  package init(bundle: InboxBundle, jobs: [InboxJob]) {
    self.bundle = bundle
    self.jobs = jobs
  }
}

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

/// A sender, who may send bundles by a token that only the sender has.
package struct InboxSender: Sendable, Hashable, Encodable {
  /// The name, different for each; at most ``maximumNameLength`` bytes.
  package var name: String

  /// The most bytes of bundles that are kept of this sender, unfinished uploads included.
  package var quota: Int64

  /// Since when the token is known.
  package var created: Timestamp

  /// Since when the token is revoked; nil while it is valid.
  package var revoked: Timestamp?

  /// A sender.
  package init(name: String, quota: Int64, created: Timestamp, revoked: Timestamp? = nil) {
    self.name = name
    self.quota = quota
    self.created = created
    self.revoked = revoked
  }

  /// The longest name, in bytes.
  package static let maximumNameLength = 100

  /// - Throws: `sender-name` where its name cannot be one.
  package func checkName() throws(InboxError) {
    guard !Self.isName(name) else { return }
    throw InboxError(
      .senderName, operation: "add a sender", detail: "that is no name for a sender",
      hint: "Give 1 to \(Self.maximumNameLength) bytes without control characters, and no space at either end.")
  }

  /// Whether a text can be a name: not empty, not too long, no control characters, no white space around it.
  static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= maximumNameLength && printable(text) == text
      && text.first?.isWhitespace == false && text.last?.isWhitespace == false
  }
}

/// A sender, and how many bytes are kept or announced of it.
package struct InboxSenderUsage: Sendable, Hashable {
  /// The sender.
  package var sender: InboxSender

  /// The bytes.
  package var used: Int64

  /// A sender and its bytes.
  package init(sender: InboxSender, used: Int64) {
    self.sender = sender
    self.used = used
  }
}

/// A file on its way in: how much of it there is.
package struct InboxUpload: Sendable, Hashable, Codable {
  /// How far an upload is.
  package enum State: String, Sendable, Hashable, Codable {
    /// Bytes are still to come, or all are there and not checked yet.
    case open

    /// It is a bundle of the inbox.
    case finished

    /// It expired, was ended by its sender, or was not what its sum says.
    case dropped
  }

  /// What it is called in its address; also the name of its file.
  package var id: String

  /// The name of the sender.
  package var sender: String

  /// How many bytes it has in all.
  package var length: Int64

  /// How many of them are on the disk.
  package var offset: Int64 = 0

  /// The SHA-256 that the sender says it has, in hexadecimal digits; nil where it does not say.
  package var sha256: String?

  /// The file's name, as the sender says; never used as a path.
  package var fileName: String?

  /// How much of a store is in it, as the sender says.
  package var level: String?

  /// What the sender said of it, as it was sent.
  package var metadata: String = ""

  /// When it was begun.
  package var created: String

  /// Until when it is kept unless more of it comes, in seconds since 1970.
  package var expires: Int64

  /// The process that it comes in by, where several receive in one inbox.
  package var frontEnd: String?

  /// How far it is.
  package var state = State.open

  /// The bundle that it became; an earlier one where the same was sent before.
  package var bundle: String?

  /// How many uploads that are not over are read at a time.
  static let readAtOnce = 1000

  /// The most uploads that are over and not forgotten, of one sender.
  package static let maximumEnded = 1000

  /// All of it is there, and it is a bundle.
  package mutating func finish(as bundle: String) {
    state = .finished
    offset = length
    self.bundle = bundle
  }

  /// An upload of which nothing has come yet.
  package init(id: String, sender: String, length: Int64, created: Timestamp, expires: Timestamp) {
    self.id = id
    self.sender = sender
    self.length = length
    self.created = created.rfc3339
    self.expires = expires.secondsSince1970
  }
}
