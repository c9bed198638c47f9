import Lazaret
import SwiftData
import SwiftUI

// Never compiled: SwiftData and SwiftUI do not exist on Linux, where the library is built.

/// A record of the app.
@Model
final class Trip {
  var name: String
  var begin: Date?

  init(name: String) { self.name = name }
}

/// The store of the app's trips, with the models of the released versions and of this one.
func tripStore() throws -> RecoverableStore {
  let folder = URL.applicationSupportDirectory
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  guard let models = Bundle.main.url(forResource: "Trips", withExtension: nil) else {
    throw CocoaError(.fileNoSuchFile)
  }
  return RecoverableStore(
    at: folder.appending(path: "Trips.store"), model: try StoreModel(contentsOf: models),
    home: folder.appending(path: "Recovery"), appVersion: "2.3")
}

/// Makes the app's container.
func tripContainer(progress: @escaping StoreProgress.Handler) async throws -> (ModelContainer, Notice?) {
  let schema = Schema([Trip.self])
  let (container, opening) = try await ModelContainer.recovering(try tripStore(), for: schema, progress: progress)
  return (container, opening.notice)
}

/// The first screen: the app's views once the store is ready.
struct TripStart: View {
  @State private var container: ModelContainer?
  @State private var notice: Notice?
  @State private var failure: StoreError?
  @State private var fraction = 0.0

  var body: some View {
    if let container {
      TripList().modelContainer(container).modifier(NoticeAlert(notice: $notice) { _ in })
    } else if let failure {
      StoreFailure(error: failure) { self.failure = nil }
    } else {
      ProgressView(value: fraction).task { await load() }
    }
  }

  private func load() async {
    do {
      let made = try await tripContainer { progress in
        Task { @MainActor in fraction = progress.fraction ?? fraction }
      }
      (container, notice) = (made.0, made.1)
    } catch let error as StoreError {
      failure = error
    } catch {
      // Cancelled, or SwiftData could not open a store that is sound: an app would say so here.
    }
  }
}

/// The app's trips.
struct TripList: View {
  @Query(sort: \Trip.name) private var trips: [Trip]

  var body: some View {
    List(trips) { trip in Text(trip.name) }
  }
}
