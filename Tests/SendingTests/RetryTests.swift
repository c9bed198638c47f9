import Sending
