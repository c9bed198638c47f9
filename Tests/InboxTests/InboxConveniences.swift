import Inbox
import Platform

extension JobQueue {
  /// Waiting and running jobs, in order of execution.
  func pending() throws(InboxError) -> [InboxJob] {
    try (jobs(in: .waiting, after: nil, limit: .max) + running()).sorted { $0.id < $1.id }
  }

  func add(_ kind: InboxJob.Kind, forEach bundles: [String], at date: Timestamp) throws(InboxError) {
    for bundle in bundles { try add(kind, for: bundle, at: date) }
  }
}

extension InboxRecords {
  func entries(
    words: String, group: String?, state: InboxBundle.State?, limit: Int
  ) throws(InboxError) -> [InboxEntry] {
    try entries(InboxFilter(words: words, group: group, state: state), after: nil, limit: limit).items
  }

  func groups(limit: Int) throws(InboxError) -> [InboxGroup] { try groups(after: nil, limit: limit).items }

  func openUploads() throws(InboxError) -> [InboxUpload] { try openUploads(limit: .max) }

  /// Removes a bundle regardless of the retention rules; false if spared or missing.
  func remove(_ removal: InboxRemoval, sparing states: Set<InboxJob.State>) throws(InboxError) -> Bool {
    try remove(removal, sparing: states, newer: 0) { _ in true } != nil
  }
}

extension Inbox {
  func addSender(_ name: String, quota: Int64) throws -> SenderToken {
    try records.addSender(name, quota: quota, at: surroundings.now())
  }
}

/// Runs the work in this process, without protection.
struct WorkInProcess: WorkRunner {
  let surroundings: Surroundings

  func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult? {
    BundleWork(order, surroundings: surroundings).run()
  }
}

extension InboxLimits {
  init(bundleBytes: Int64? = nil, totalBytes: Int64? = nil, openUploads: Int? = nil) {
    self.init()
    self.bundleBytes = bundleBytes ?? self.bundleBytes
    self.totalBytes = totalBytes ?? self.totalBytes
    self.openUploads = openUploads ?? self.openUploads
  }
}

extension WorkLimits {
  init(memory: UInt64, fileBytes: UInt64? = nil) {
    self.init()
    self.memory = memory
    self.fileBytes = fileBytes ?? self.fileBytes
  }
}
