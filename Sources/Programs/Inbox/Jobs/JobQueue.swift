package import StoreFiles

/// The work that waits, in an order that survives any kill.
///
/// A process that takes a job leases it: when the lease ends and the job is not done, the job is there for the next one. A job that
/// ends with an error of its bundle's is begun a bounded number of times; one that its surroundings kept from being done waits for them.
/// Nothing in it is of one kind of database.
package protocol JobQueue: Sendable {
  /// Adds a job; nothing is done where the bundle has one of that kind.
  func add(_ kind: InboxJob.Kind, for bundle: String, at date: Timestamp) throws(InboxError)

  /// Adds a job for each of these bundles that has none of that kind.
  func add(_ kind: InboxJob.Kind, forEach bundles: [String], at date: Timestamp) throws(InboxError)

  /// Adds a job for each bundle in a state that has none of that kind, in the order in which they arrived.
  func add(_ kind: InboxJob.Kind, forAll state: InboxBundle.State, at date: Timestamp) throws(InboxError)

  /// Takes the job that has waited longest, and counts the attempt.
  ///
  /// A job whose lease has ended very often without a word waits for a while, with the code `worker-lost`.
  ///
  /// - Parameters:
  ///   - owner: who takes it.
  ///   - seconds: how long the lease is.
  /// - Returns: nil where nothing waits, or not yet.
  func lease(by owner: String, for seconds: Int64, at date: Timestamp) throws(InboxError) -> InboxJob?

  /// Goes on with a lease; false where it is lost.
  func extend(_ job: InboxJob, for seconds: Int64, at date: Timestamp) throws(InboxError) -> Bool

  /// Notes what came of a job.
  ///
  /// A bundle that cannot be opened, or for which there is no room, is refused in the same step: no kill leaves one that
  /// waits for a job that has failed.
  ///
  /// - Returns: how far the job is now; nil where the lease was lost meanwhile, and nothing is noted.
  func end(_ job: InboxJob, _ outcome: InboxJobOutcome, at date: Timestamp) throws(InboxError) -> InboxJob.State?

  /// Ends the leases of an owner that is known to be no more; that is an end without a word.
  func release(owner: String, at date: Timestamp) throws(InboxError)

  /// Begins a job anew, with all its tries; one that runs is left alone.
  ///
  /// A bundle that is opened anew is one that was received, in the same step.
  func restart(_ kind: InboxJob.Kind, of bundle: String, at date: Timestamp) throws(InboxError)

  /// The jobs of a bundle, in the order in which they are done.
  func jobs(of bundle: String) throws(InboxError) -> [InboxJob]

  /// The jobs that wait or run.
  func pending() throws(InboxError) -> [InboxJob]

  /// The jobs that run, or whose lease has ended.
  func running() throws(InboxError) -> [InboxJob]

  /// The jobs in a state, those of the latest bundles first; only those behind the one of a number where it is given.
  ///
  /// Jobs that have failed have their reasons. What begins them again is ``restart(_:of:at:)``: a person asks for it, or, for a
  /// salvage, its bundle is opened again.
  func jobs(in state: InboxJob.State, after id: Int64?, limit: Int) throws(InboxError) -> [InboxJob]

  /// How many jobs there are in each state.
  ///
  /// - Throws: `inbox-records`.
  func counts() throws(InboxError) -> [InboxJob.State: Int]

  /// How many jobs wait for their surroundings for each reason, by the stable word of it; the reasons of the most jobs.
  ///
  /// - Throws: `inbox-records`.
  func hindrances(limit: Int) throws(InboxError) -> [String: Int]

  /// Forgets the jobs of a bundle.
  func remove(of bundle: String) throws(InboxError)
}
