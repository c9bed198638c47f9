package import Platform

/// An inbox's senders, uploads, bundles and damage.
///
/// Calls are atomic and thread-safe. The protocol fits any database.
package protocol InboxRecords: Sendable {
  // MARK: Senders

  /// Adds a sender.
  ///
  /// - Throws: `sender-exists`, also for a revoked sender's name.
  func add(_ sender: InboxSender, tokenSum: [UInt8]) throws(InboxError)

  /// Revokes a sender's token.
  ///
  /// - Throws: `no-such-sender`.
  func revokeSender(_ name: String, at date: Timestamp) throws(InboxError)

  /// A page of senders by name.
  func senders(after name: String?, limit: Int) throws(InboxError) -> [InboxSenderUsage]

  /// The sender of a valid token.
  func sender(withTokenSum sum: [UInt8]) throws(InboxError) -> (sum: [UInt8], sender: InboxSender)?

  /// Stored and announced bytes by sender, results included.
  func usage() throws(InboxError) -> [String: Int64]

  /// The stored and announced bytes of all senders.
  func usedBytes() throws(InboxError) -> Int64

  // MARK: Uploads

  /// Begins an upload within limits and quota.
  func admit(_ upload: InboxUpload, quota: Int64, limits: InboxLimits) throws(InboxError) -> InboxAdmission

  /// An upload in any state.
  func upload(_ id: String) throws(InboxError) -> InboxUpload?

  /// Changes an existing upload exclusively.
  ///
  /// - Parameters:
  ///   - operation: an infinitive phrase for errors.
  ///   - change: false keeps it.
  /// - Returns: whether it was changed.
  @discardableResult
  func changeUpload(
    _ id: String, to operation: String, _ change: (inout InboxUpload) -> Bool
  ) throws(InboxError) -> Bool

  /// The open uploads in order of their start.
  func openUploads(limit: Int) throws(InboxError) -> [InboxUpload]

  /// A page of open uploads by identifier.
  func openUploads(after id: String?, limit: Int) throws(InboxError) -> [InboxUpload]

  /// Makes an upload a bundle.
  ///
  /// - Returns: the earlier bundle if the sender sent the file before or the call is repeated.
  /// - Throws: `not-in-inbox` if the upload was dropped or its bundle removed; `inbox-records`.
  func makeBundle(_ bundle: InboxBundle, of id: String) throws(InboxError) -> InboxBundle

  /// Forgets old ended uploads, and a sender's oldest beyond a limit.
  func pruneUploads(at date: Timestamp) throws(InboxError)

  // MARK: Room

  /// The bytes left in quota and inbox; 0 or less if full.
  func room(of sender: String, totalBytes: Int64) throws(InboxError) -> Int64

  /// Records the size of a bundle's results, within quota and inbox.
  ///
  /// - Parameter totalBytes: the inbox's limit; nil to record in any case.
  /// - Returns: false, without recording, if there is no room.
  func place(_ bytes: Int64, of bundle: String, totalBytes: Int64?) throws(InboxError) -> Bool

  /// The size of a bundle's results, if recorded.
  func placed(of bundle: String) throws(InboxError) -> Int64?

  // MARK: Bundles

  /// All bundles, with whether the size of their results is recorded.
  func bundleIDs() throws(InboxError) -> [String: Bool]

  /// The bundles in a state, in order of arrival.
  func bundleIDs(in state: InboxBundle.State) throws(InboxError) -> [String]

  /// The identifiers among these that bundles have.
  func known(_ ids: [String]) throws(InboxError) -> Set<String>

  func bundle(_ id: String) throws(InboxError) -> InboxBundle?

  /// A bundle with its jobs in one snapshot.
  func entry(_ id: String) throws(InboxError) -> InboxEntry?

  /// A page of bundles in one snapshot, newest first, without files and salvage accounts.
  func entries(_ filter: InboxFilter, after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxEntry>

  /// The number of bundles by state.
  ///
  /// - Throws: `inbox-records`.
  func bundleCounts() throws(InboxError) -> [InboxBundle.State: Int]

  /// Changes an existing bundle exclusively.
  func change(_ id: String, _ change: (inout InboxBundle) -> Void) throws(InboxError)

  /// Deletes a bundle and its uploads.
  func remove(_ bundle: String) throws(InboxError)

  // MARK: Retention

  /// A page of bundles for the retention rules, oldest first.
  ///
  /// - Parameter newer: the most newer bundles of the same damage to count.
  func retentionCandidates(after key: InboxKey?, newer: Int, limit: Int) throws(InboxError) -> [RetentionCandidate]

  /// Removes a bundle with its jobs and uploads, and records the removal, in one step.
  ///
  /// No other bundle is removed between check and step; the removal describes the bundle as of the step.
  ///
  /// - Parameters:
  ///   - states: spares a bundle with such a job; `waiting` also one that waits to be opened.
  ///   - newer: the most newer bundles of the same damage to count.
  ///   - mayGo: checks the current bundle; may be called repeatedly.
  /// - Returns: nil if spared or missing.
  func remove(
    _ removal: InboxRemoval, sparing states: Set<InboxJob.State>, newer: Int, where mayGo: (RetentionCandidate) -> Bool
  ) throws(InboxError) -> InboxRemoval?

  /// Removed bundles with files that may still exist.
  func removalsNotCleared() throws(InboxError) -> [String]

  func noteCleared(_ bundle: String) throws(InboxError)

  /// A page of removals, latest first.
  func removals(after number: Int64?, limit: Int) throws(InboxError) -> [InboxRemoval]

  // MARK: Batches

  /// Records a salvage result, also in waiting batches of its version; idempotent for batches.
  ///
  /// - Parameter before: an earlier version's, if known.
  func noteSalvage(of bundle: String, before: SalvageCount?, after: SalvageCount) throws(InboxError)

  /// The number of a damage's bundles last salvaged by an earlier version.
  func salvagedEarlier(of group: String, than version: String) throws(InboxError) -> Int

  /// Creates a batch of the oldest ``SalvageBatch/maximumBundles`` such bundles and restarts their salvages, in one
  /// step.
  ///
  /// - Returns: nil without bundles.
  /// - Throws: `inbox-not-now` while another batch of the damage runs.
  func beginBatch(of group: String, version: String, at date: Timestamp) throws(InboxError) -> SalvageBatch?

  func batch(_ number: Int64) throws(InboxError) -> SalvageBatch?

  /// A page of one damage's batches or all, latest first, without results.
  func batches(of group: String?, after number: Int64?, limit: Int) throws(InboxError) -> [SalvageBatch]

  /// The bundles of a batch, by identifier.
  ///
  /// - Parameters:
  ///   - change: only bundles with it.
  ///   - bundle: the one to continue after.
  func items(
    of batch: Int64, change: SalvageChange?, after bundle: String?, limit: Int
  ) throws(InboxError) -> [SalvageBatchItem]

  // MARK: Damage

  /// Records a sighting, once per store.
  func note(_ sighting: InboxSighting) throws(InboxError)

  /// A page of damages, latest first.
  func groups(after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxGroup>

  /// The known damages of these groups, in the given order.
  func groups(_ ids: [String]) throws(InboxError) -> [InboxGroup]

  /// Fingerprints by descending weight of shared marks.
  func fingerprints(sharing bands: [DamageFingerprint.Band], limit: Int) throws(InboxError) -> [DamageFingerprint]
}

extension InboxRecords {
  package func senders() throws(InboxError) -> [InboxSender] { try senders(after: nil, limit: .max).map(\.sender) }

  package func bundleCount() throws(InboxError) -> Int { try bundleCounts().values.reduce(0, +) }

  package func group(_ id: String) throws(InboxError) -> InboxGroup? { try groups([id]).first }

  /// Updates an existing bundle.
  package func save(_ bundle: InboxBundle) throws(InboxError) { try change(bundle.id) { $0 = bundle } }

  /// Records an upload's durable bytes and expiry.
  package func advance(_ id: String, to offset: Int64, expires: Timestamp) throws(InboxError) {
    try changeUpload(id, to: "note how much has come") { upload in
      upload.offset = offset
      upload.expires = expires.secondsSince1970
      return true
    }
  }

  /// Drops an open upload; returns whether it was open.
  @discardableResult package func drop(_ id: String) throws(InboxError) -> Bool {
    try changeUpload(id, to: "end the upload") { upload in
      guard upload.state == .open else { return false }
      upload.state = .dropped
      return true
    }
  }

  /// Visits each open upload, reading them in pages.
  func eachOpenUpload(_ body: (InboxUpload) throws -> Void) throws {
    var last: String?
    while true {
      let uploads = try openUploads(after: last, limit: InboxUpload.readAtOnce)
      for upload in uploads { try body(upload) }
      guard uploads.count == InboxUpload.readAtOnce else { return }
      last = uploads.last?.id
    }
  }

  /// Adds a sender.
  ///
  /// - Returns: the token, which is not stored and cannot be shown again.
  /// - Throws: `sender-exists`, `sender-name`, `inbox-records`.
  package func addSender(_ name: String, quota: Int64, at date: Timestamp) throws(InboxError) -> SenderToken {
    let token = SenderToken.random()
    try add(InboxSender(name: name, quota: quota, created: date), tokenSum: token.sum)
    return token
  }
}

extension [String: Int64] {
  /// The counts above zero by state; a later software version may have more states.
  func byState<State: RawRepresentable<String>>() -> [State: Int] {
    reduce(into: [:]) { counts, count in
      if let state = State(rawValue: count.key), count.value > 0 { counts[state] = Int(count.value) }
    }
  }
}

/// A snapshot of a bundle and its jobs.
package struct InboxEntry: Sendable, Hashable {
  package var bundle: InboxBundle

  /// In order of execution.
  package var jobs: [InboxJob]

  var key: InboxKey { InboxKey(date: bundle.date, id: bundle.id) }
}

/// Whether an upload may begin.
package enum InboxAdmission: Sendable, Hashable {
  /// Admitted and recorded.
  case begun

  /// The sender has already sent the whole file.
  case known(InboxUpload)

  /// Too many unfinished uploads of the sender.
  case tooMany

  case senderFull, full
}

package struct InboxLimits: Sendable, Hashable {
  /// The most bytes of one bundle.
  package var bundleBytes: Int64 = 4 << 30

  /// The most bytes of all bundles and unfinished uploads.
  package var totalBytes: Int64 = 100 << 30

  /// The most unfinished uploads of one sender.
  package var openUploads = 16

  /// The seconds until an idle upload expires.
  package var uploadSeconds: Int64 = 7 * 86_400

  /// The disk bytes to keep free.
  package var freeBytes: Int64 = 256 << 20

  package init() {}
}

/// The owner of a token for sending bundles.
package struct InboxSender: Sendable, Hashable, Encodable {
  /// Unique; at most ``maximumNameLength`` bytes.
  package var name: String

  /// The most bytes of bundles and unfinished uploads.
  package var quota: Int64

  package var created: Timestamp

  /// When the token was revoked; nil while valid.
  package var revoked: Timestamp?

  package init(name: String, quota: Int64, created: Timestamp, revoked: Timestamp? = nil) {
    self.name = name
    self.quota = quota
    self.created = created
    self.revoked = revoked
  }

  /// In bytes.
  static let maximumNameLength = 100

  /// - Throws: `sender-name` for an invalid name.
  func checkName() throws(InboxError) {
    guard name.utf8.count <= Self.maximumNameLength, printable(name) == name, name.first?.isWhitespace == false,
      name.last?.isWhitespace == false
    else {
      throw InboxError(
        .senderName, operation: "add a sender", detail: "that is no name for a sender",
        hint: "Give 1 to \(Self.maximumNameLength) bytes without control characters, and no space at either end.")
    }
  }
}

/// A sender's stored and announced bytes.
package struct InboxSenderUsage: Sendable, Hashable {
  package var sender: InboxSender

  package var used: Int64
}

package struct InboxUpload: Sendable, Hashable, Codable {
  package enum State: String, Sendable, Hashable, Codable {
    /// Incomplete, or complete and unchecked.
    case open

    case finished

    /// Expired, ended by the sender, or of a wrong checksum.
    case dropped
  }

  /// The identifier in its address, also its file's name.
  package var id: String

  package var sender: String

  /// The total bytes.
  package var length: Int64

  /// The bytes on disk.
  package var offset: Int64 = 0

  /// The sender's SHA-256, in hexadecimal.
  package var sha256: String?

  /// The sender's file name; never used as a path.
  package var fileName: String?

  /// The share of a store, as the sender claims.
  var level: String?

  /// The sender's raw metadata.
  var metadata: String = ""

  package var created: String

  /// The expiry unless more arrives, in seconds since 1970.
  package var expires: Int64

  /// The receiving process, if several.
  package var frontEnd: String?

  package var state = State.open

  /// Its bundle; an earlier one for a resent file.
  package var bundle: String?

  static let readAtOnce = 1000

  /// The most ended uploads kept per sender.
  static let maximumEnded = 1000

  mutating func finish(as bundle: String) {
    state = .finished
    offset = length
    self.bundle = bundle
  }

  package init(id: String, sender: String, length: Int64, created: Timestamp, expires: Timestamp) {
    self.id = id
    self.sender = sender
    self.length = length
    self.created = created.rfc3339
    self.expires = expires.secondsSince1970
  }
}

/// A position in a list, after which a page begins.
///
/// Keyset pagination instead of offsets: the last page takes no longer than the first, and new items do not shift it.
package struct InboxKey: Sendable, Hashable {
  /// The sort date, in RFC 3339.
  var date: String

  /// Orders items of equal date.
  var id: String

  private static let maximumLength = 200

  package var text: String { "\(date)_\(id)" }
}

extension InboxKey {
  package init?(_ text: String) {
    let parts = text.split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, text.utf8.count <= Self.maximumLength, !parts[0].isEmpty, !parts[1].isEmpty,
      text.utf8.allSatisfy({ $0 > 32 && $0 < 127 })
    else { return nil }
    self.init(date: String(parts[0]), id: String(parts[1]))
  }
}

package struct InboxFilter: Sendable, Hashable {
  /// The searched text, ignoring case; empty for all.
  package var words: String

  var group: String?

  package var state: InboxBundle.State?

  package var sender: String?

  package init(words: String = "", group: String? = nil, state: InboxBundle.State? = nil, sender: String? = nil) {
    self.words = words
    self.group = group
    self.state = state
    self.sender = sender
  }

  /// Whether a trigram index can serve: it needs three letters or digits in a row.
  var hasThreeLetters: Bool {
    var run = 0
    for scalar in words.unicodeScalars {
      run = scalar.properties.isAlphabetic || scalar.properties.numericType != nil ? run + 1 : 0
      if run == 3 { return true }
    }
    return false
  }
}

package struct InboxList<Item: Sendable>: Sendable {
  package var items: [Item]

  /// The next page's key; nil on the last.
  ///
  /// A page may be short or empty without being the last: searches without index cover a bounded number of bundles at a
  /// time.
  package var next: InboxKey?
}

extension InboxList {
  /// Creates a page from up to `limit` + 1 items.
  ///
  /// - Parameter edge: where a search that found no more goes on.
  init(_ items: [Item], limit: Int, edge: InboxKey? = nil, key: (Item) -> InboxKey) {
    let page = Array(items.prefix(max(0, limit)))
    self.init(items: page, next: (items.count > page.count ? page.last.map(key) : nil) ?? edge)
  }
}
