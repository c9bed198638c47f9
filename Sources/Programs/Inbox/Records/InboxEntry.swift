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
